package com.endpoint.sapwood;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.content.Intent;
import android.net.Uri;
import android.provider.DocumentsContract;
import android.view.View;
import android.widget.ListView;
import android.widget.TextView;
import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.EngineException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

/** Importing, choosing and deleting models. */
@RunWith(RobolectricTestRunner.class)
public class BundlesActivityTest {
  @Rule public final AppRule app = new AppRule();

  private final Map<String, byte[]> files = new TreeMap<>();
  private BundlesActivity screen;

  @Before
  public void openTheScreen() throws Exception {
    RuntimeEnvironment.setQualifiers(AppRule.PHONE);
    byte[] weights = {1, 2, 3};
    StringBuilder digest = new StringBuilder();
    for (byte value : MessageDigest.getInstance("SHA-256").digest(weights)) {
      digest.append(String.format("%02x", value));
    }
    String manifest =
        "{\"schema_version\": 1, \"name\": \"Small\", \"files\": [{\"name\": \"target.weights\","
            + " \"bytes\": 3, \"sha256\": \"" + digest + "\"}]}";
    files.put("manifest.json", manifest.getBytes(StandardCharsets.UTF_8));
    files.put("target.weights", weights);
    screen = app.open(BundlesActivity.class);
  }

  private byte[] zip() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
      for (Map.Entry<String, byte[]> file : files.entrySet()) {
        zip.putNextEntry(new ZipEntry("small/" + file.getKey()));
        zip.write(file.getValue());
        zip.closeEntry();
      }
    }
    return bytes.toByteArray();
  }

  /** Presses a button and lets the system's picker return a document. */
  private void pick(int button, Uri uri) throws Exception {
    screen.findViewById(button).performClick();
    Intent asked = shadowOf(screen).getNextStartedActivityForResult().intent;
    shadowOf(screen).receiveResult(asked, Activity.RESULT_OK, new Intent().setData(uri));
    Waiting.until("the import", () -> !AppRule.application().models().isImporting());
  }

  private void pickZip(byte[] content) throws Exception {
    Uri uri = Uri.parse("content://files/small.zip");
    shadowOf(screen.getContentResolver())
        .registerInputStreamSupplier(uri, () -> new ByteArrayInputStream(content));
    pick(R.id.import_zip, uri);
  }

  private String result() {
    return ((TextView) screen.findViewById(R.id.import_result)).getText().toString();
  }

  private int listed() {
    return ((ListView) screen.findViewById(R.id.bundles)).getAdapter().getCount();
  }

  private void assertRefused(int reason, Object... arguments) {
    String why = screen.getString(reason, arguments);
    assertEquals(screen.getString(R.string.import_refused, why), result());
    assertEquals(View.VISIBLE, screen.findViewById(R.id.import_result).getVisibility());
    assertEquals(0, listed());
  }

  @Test
  public void aWholeBundleIsImportedFromAZipFileAndChosen() throws Exception {
    pickZip(zip());
    assertEquals(screen.getString(R.string.imported, "small"), result());
    assertEquals(1, listed());
    assertEquals("small", AppRule.application().models().chosen().getName());
  }

  @Test
  public void aWholeBundleIsImportedFromAFolder() throws Exception {
    FakeDocuments.files.clear();
    FakeDocuments.files.putAll(files);
    Robolectric.buildContentProvider(FakeDocuments.class).create(FakeDocuments.AUTHORITY);
    pick(
        R.id.import_folder,
        DocumentsContract.buildTreeDocumentUri(FakeDocuments.AUTHORITY, FakeDocuments.ROOT));
    assertEquals(screen.getString(R.string.imported, "small"), result());
    assertEquals(1, listed());
  }

  @Test
  public void aDamagedFileIsNamedAndNothingIsImported() throws Exception {
    files.put("target.weights", new byte[] {1, 2, 4});
    pickZip(zip());
    assertRefused(R.string.bundle_wrong_checksum, "target.weights");
    Pictures.take(screen, "refused");
  }

  @Test
  public void aZipFileThatWasCutOffIsRefused() throws Exception {
    byte[] whole = zip();
    pickZip(java.util.Arrays.copyOf(whole, whole.length / 3));
    assertEquals(0, listed());
    assertTrue(result(), result().startsWith(screen.getString(R.string.import_refused, "")));
  }

  @Test
  public void whatIsNoZipFileIsNoModel() throws Exception {
    pickZip("hello".getBytes(StandardCharsets.UTF_8));
    assertRefused(R.string.bundle_no_manifest);
  }

  @Test
  public void whatTheEngineRefusesIsSaidInTheChat() throws Exception {
    ChatActivity chat = app.open(ChatActivity.class);
    pickZip(zip()); // whole by its list, and still no model
    Waiting.until("a refusal", () -> AppRule.session().state() == Engine.State.FAILED);
    EngineException problem = AppRule.session().problem();
    TextView banner = chat.findViewById(R.id.banner_text);
    assertEquals(Words.of(chat, problem), banner.getText().toString());
    assertEquals(View.VISIBLE, chat.findViewById(R.id.banner).getVisibility());
  }
}
