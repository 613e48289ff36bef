package com.endpoint.sapwood.engine;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Random;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public class FrameTest {
  private static Frame read(byte[] bytes) throws IOException {
    return Frame.read(new ByteArrayInputStream(bytes));
  }

  @Test
  public void aFrameComesBackAsItWasSent() throws Exception {
    String text = "Zürich \u6728 \ud83c\udf33 \"\\\n\u0000";
    byte[] bytes = new Frame(Frame.TEXT, Json.object("id", 1L << 53, "text", text)).toBytes();
    Frame frame = read(bytes);
    assertEquals(Frame.TEXT, frame.type);
    assertEquals(text, frame.body.getString("text"));
    assertEquals(1L << 53, frame.body.getLong("id"));
  }

  @Test
  public void theLayoutIsThatOfTheProtocol() {
    byte[] bytes = new Frame(Frame.PING, Json.object("id", 7)).toBytes();
    assertEquals("[8, 0, 0, 0, 5, 123, 34, 105, 100, 34, 58, 55, 125]", Arrays.toString(bytes));
  }

  @Test
  public void theEndBetweenFramesIsNoError() throws Exception {
    assertNull(read(new byte[0]));
  }

  @Test
  public void theEndWithinAFrameIsAnErrorWhereverItIs() {
    byte[] bytes = new Frame(Frame.PING, Json.object("id", 7)).toBytes();
    for (int length = 1; length < bytes.length; length++) {
      byte[] half = Arrays.copyOf(bytes, length);
      assertThrows(EOFException.class, () -> read(half));
    }
  }

  @Test
  public void aFrameThatIsTooLongIsNotWaitedFor() {
    assertThrows(IOException.class, () -> read(new byte[] {1, 0, 16, 0, (byte) Frame.TEXT}));
    assertThrows(IOException.class, () -> read(new byte[] {-1, -1, -1, -1, (byte) Frame.TEXT}));
  }

  @Test
  public void randomBytesAreRefusedAndNothingWorse() {
    Random random = new Random(1);
    for (int round = 0; round < 2000; round++) {
      byte[] bytes = new byte[5 + random.nextInt(60)];
      random.nextBytes(bytes);
      bytes[1] = bytes[2] = bytes[3] = 0; // a length that may be there
      try {
        read(bytes);
      } catch (IOException e) {
        continue;
      }
      throw new AssertionError("not JSON, and taken: " + Arrays.toString(bytes));
    }
  }
}
