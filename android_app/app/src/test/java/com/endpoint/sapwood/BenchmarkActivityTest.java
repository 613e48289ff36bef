package com.endpoint.sapwood;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.view.View;
import android.view.ViewGroup;
import android.widget.TextView;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

@RunWith(RobolectricTestRunner.class)
public class BenchmarkActivityTest {
  @Rule public final AppRule app = new AppRule();

  private static String status(BenchmarkActivity screen) {
    return ((TextView) screen.findViewById(R.id.benchmark_status)).getText().toString();
  }

  @Test
  public void everyModeIsMeasuredAndSaysTheSame() throws Exception {
    RuntimeEnvironment.setQualifiers(AppRule.PHONE);
    app.openChat();
    BenchmarkActivity screen = app.open(BenchmarkActivity.class);
    screen.findViewById(R.id.benchmark_start).performClick();
    String end = screen.getString(R.string.benchmark_done, "31.2 °C", "31.2 °C");
    Waiting.until("the last answer", () -> status(screen).equals(end));
    ViewGroup results = screen.findViewById(R.id.benchmark_results);
    assertEquals(4, results.getChildCount());
    for (int i = 0; i < results.getChildCount(); i++) {
      View result = results.getChildAt(i);
      TextView text = result.findViewById(R.id.result_text);
      assertEquals(screen.getString(R.string.benchmark_same), text.getText().toString());
    }
    Pictures.take(screen, "benchmark-day");
  }

  @Test
  public void leavingTheScreenEndsIt() throws Exception {
    app.openChat();
    BenchmarkActivity screen = app.open(BenchmarkActivity.class);
    screen.findViewById(R.id.benchmark_start).performClick();
    Waiting.until("a first answer", () -> status(screen).contains("2"));
    screen.findViewById(R.id.benchmark_start).performClick(); // cancels
    Waiting.until(
        "an engine that is free", () -> AppRule.session().engineIfReady() != null);
    AppRule.application().settings().setLength(64);
    AppRule.session().send("Name three trees.");
    Waiting.until("an answer", () -> !AppRule.session().isAnswering());
    assertTrue(AppRule.session().messages().get(1).text.length() > 0);
  }

  @Test
  public void withoutAModelItSaysSo() {
    BenchmarkActivity screen = app.open(BenchmarkActivity.class);
    screen.findViewById(R.id.benchmark_start).performClick();
    String why = screen.getString(R.string.problem_not_loaded);
    assertEquals(screen.getString(R.string.benchmark_failed, why), status(screen));
  }
}
