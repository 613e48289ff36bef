package com.endpoint.sapwood;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.widget.SeekBar;
import android.widget.Spinner;
import com.endpoint.sapwood.engine.GenerateOptions.Mode;
import com.endpoint.sapwood.engine.ModelInfo;
import com.endpoint.sapwood.engine.TreeSnapshot;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;

@RunWith(RobolectricTestRunner.class)
public class SettingsActivityTest {
  @Rule public final AppRule app = new AppRule();

  private static void slide(SettingsActivity screen, int title, int place) {
    ((SeekBar) screen.findViewById(title)).setProgress(place);
  }

  @Test
  public void whatIsChosenIsKept() {
    SettingsActivity screen = app.open(SettingsActivity.class);
    slide(screen, R.string.setting_temperature, 14);
    slide(screen, R.string.setting_budget, 6);
    slide(screen, R.string.setting_length, 0);
    Spinner mode = screen.findViewById(R.string.setting_mode);
    mode.setSelection(Mode.CHAIN.ordinal());
    AppRule.idle();
    Settings kept = new Settings(screen);
    assertEquals(0.7, kept.temperature(), 1e-6);
    assertEquals(7, kept.budget());
    assertEquals(64, kept.length());
    assertEquals(Mode.CHAIN, kept.mode());
  }

  @Test
  public void everyModeHasAName() {
    Spinner mode = app.open(SettingsActivity.class).findViewById(R.string.setting_mode);
    assertEquals(Mode.values().length, mode.getAdapter().getCount());
  }

  @Test
  public void theBudgetBoundsTheTree() throws Exception {
    app.openChat();
    ActivityController<SettingsActivity> settings = app.control(SettingsActivity.class);
    slide(settings.get(), R.string.setting_budget, 1);
    ((Spinner) settings.get().findViewById(R.string.setting_mode))
        .setSelection(Mode.FIXED.ordinal());
    AppRule.idle();
    ChatSession session = AppRule.session();
    ModelInfo before = session.model();
    settings.pause().stop();
    Waiting.until(
        "the model with another budget",
        () -> session.model() != null && session.model() != before);
    AppRule.application().settings().setLength(64);
    session.send("Why are leaves green?");
    int[] largest = {0};
    Waiting.until(
        "an answer",
        () -> {
          TreeSnapshot tree = session.tree();
          largest[0] = Math.max(largest[0], tree == null ? 0 : tree.nodes.size());
          return !session.isAnswering();
        });
    assertTrue(largest[0] + " guesses", largest[0] > 0 && largest[0] <= 2);
  }

  @Test
  public void aChoiceOfAnotherVersionIsTheDefaultAgain() {
    app.open(SettingsActivity.class)
        .getSharedPreferences("settings", 0)
        .edit()
        .putString("mode", "TELEPATHY")
        .commit();
    assertEquals(Mode.DYNAMIC, AppRule.application().settings().mode());
  }
}
