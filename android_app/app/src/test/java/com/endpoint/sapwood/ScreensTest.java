package com.endpoint.sapwood;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.app.Activity;
import android.graphics.Bitmap;
import android.view.View;
import android.view.ViewGroup;
import android.widget.ImageView;
import android.widget.SeekBar;
import com.endpoint.sapwood.engine.GenerateOptions.Mode;
import com.endpoint.sapwood.engine.TreeSnapshot;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.ParameterizedRobolectricTestRunner;
import org.robolectric.ParameterizedRobolectricTestRunner.Parameters;
import org.robolectric.RuntimeEnvironment;

/** Every screen by day and night, in both languages and in large letters, drawn to look at. */
@RunWith(ParameterizedRobolectricTestRunner.class)
public class ScreensTest {
  private static final int SMALLEST_TARGET_DP = 48;

  @Rule public final AppRule app = new AppRule();

  private final String name;
  private final String qualifiers;
  private final float fontScale;

  public ScreensTest(String name, String qualifiers, float fontScale) {
    this.name = name;
    this.qualifiers = qualifiers;
    this.fontScale = fontScale;
  }

  @Parameters(name = "{0}")
  public static List<Object[]> looks() {
    return Arrays.asList(
        new Object[] {"day", AppRule.PHONE, 1f},
        new Object[] {"night", "w393dp-h851dp-night-xhdpi", 1f},
        new Object[] {"chinese", "zh-rCN-w393dp-h851dp-xhdpi", 1f},
        new Object[] {"large", AppRule.PHONE, 2f});
  }

  @Before
  public void look() throws Exception {
    RuntimeEnvironment.setQualifiers(qualifiers);
    RuntimeEnvironment.setFontScale(fontScale);
  }

  @Test
  public void chat() throws Exception {
    ChatActivity chat = app.openChat().get();
    assertUsable(chat);
    Pictures.take(chat, "welcome-" + name);

    ChatSession session = AppRule.session();
    AppRule.application().settings().setLength(128);
    AppRule.application().settings().setMode(Mode.FIXED); // a tree in every step, on any machine
    LargestTree largest = new LargestTree();
    session.observe(largest);
    session.send("Why are leaves green?");
    Waiting.until("an answer", () -> !session.isAnswering());
    assertUsable(chat);
    TreeView tree = chat.findViewById(R.id.tree);
    tree.show(largest.tree);
    AppRule.idle();
    Bitmap picture = Pictures.take(chat, "chat-" + name);
    int bright = Pictures.count(picture, tree, chat.getColor(R.color.accepted));
    assertTrue(bright + " bright pixels", bright > 300);
    assertTrue(Pictures.count(picture, tree, chat.getColor(R.color.guess)) > 100);
    tree.show(new TreeSnapshot(2, Collections.<TreeSnapshot.Node>emptyList()));
    AppRule.idle();
    picture = Pictures.take(chat, "no-tree-" + name);
    assertEquals(0, Pictures.count(picture, tree, chat.getColor(R.color.accepted)));
  }

  /** Keeps the tree of which most came true. */
  private static final class LargestTree implements ChatSession.Observer {
    private TreeSnapshot tree;

    @Override
    public void onSessionChanged() {}

    @Override
    public void onAnswerGrew() {}

    @Override
    public void onMetricsChanged() {
      TreeSnapshot now = AppRule.session().tree();
      if (now != null && (tree == null || now.acceptedCount() > tree.acceptedCount())) {
        tree = now;
      }
    }
  }

  @Test
  public void settings() throws Exception {
    app.openChat();
    Activity screen = app.open(SettingsActivity.class);
    assertUsable(screen);
    Pictures.take(screen, "settings-" + name);
  }

  @Test
  public void models() throws Exception {
    Activity empty = app.open(BundlesActivity.class);
    Pictures.take(empty, "no-models-" + name);
    AppRule.installBundle();
    Activity screen = app.open(BundlesActivity.class);
    assertUsable(screen);
    Pictures.take(screen, "models-" + name);
  }

  /** What can be touched is large enough to be, and what has no text has a name for TalkBack. */
  private static void assertUsable(Activity screen) {
    AppRule.idle();
    float density = screen.getResources().getDisplayMetrics().density;
    ViewGroup root = screen.findViewById(R.id.root);
    assertUsable(root, SMALLEST_TARGET_DP * density);
  }

  private static void assertUsable(View view, float smallest) {
    if (view.getVisibility() != View.VISIBLE) {
      return;
    }
    if ((view.isClickable() || view instanceof SeekBar) && view.isEnabled()) {
      String who = view.getClass().getSimpleName() + " " + view.getContentDescription();
      assertTrue(who + " is " + view.getHeight() + " high", view.getHeight() >= smallest - 1);
    }
    boolean picture = view instanceof ImageView && view.isImportantForAccessibility();
    if (picture) {
      assertTrue(view + " has no name", view.getContentDescription() != null);
    }
    if (view instanceof ViewGroup) {
      ViewGroup group = (ViewGroup) view;
      for (int i = 0; i < group.getChildCount(); i++) {
        assertUsable(group.getChildAt(i), smallest);
      }
    }
  }
}
