package com.endpoint.sapwood;

import android.app.Activity;
import android.os.Build;
import android.view.View;
import android.view.WindowInsets;
import android.widget.Toolbar;

/** What every screen needs: room for the system's bars and the keyboard, and a toolbar. */
final class Screen {
  private Screen() {}

  /** Keeps the content clear of bars, cut-outs and keyboard: since Android 15 nobody else does. */
  static void fit(Activity activity) {
    View root = activity.findViewById(R.id.root);
    root.setSystemUiVisibility(
        View.SYSTEM_UI_FLAG_LAYOUT_STABLE
            | View.SYSTEM_UI_FLAG_LAYOUT_FULLSCREEN
            | View.SYSTEM_UI_FLAG_LAYOUT_HIDE_NAVIGATION
            | root.getSystemUiVisibility());
    root.setOnApplyWindowInsetsListener(
        new View.OnApplyWindowInsetsListener() {
          @Override
          public WindowInsets onApplyWindowInsets(View view, WindowInsets insets) {
            pad(view, insets);
            return insets;
          }
        });
  }

  @SuppressWarnings("deprecation") // the older names are the only ones before Android 11
  private static void pad(View view, WindowInsets insets) {
    if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.R) {
      int types =
          WindowInsets.Type.systemBars()
              | WindowInsets.Type.displayCutout()
              | WindowInsets.Type.ime();
      android.graphics.Insets sides = insets.getInsets(types);
      view.setPadding(sides.left, sides.top, sides.right, sides.bottom);
    } else {
      view.setPadding(
          insets.getSystemWindowInsetLeft(),
          insets.getSystemWindowInsetTop(),
          insets.getSystemWindowInsetRight(),
          insets.getSystemWindowInsetBottom());
    }
  }

  /** A toolbar with the activity's own title and a way back. */
  static void addBackToolbar(final Activity activity) {
    Toolbar toolbar = activity.findViewById(R.id.toolbar);
    toolbar.setTitle(activity.getTitle());
    toolbar.setNavigationIcon(R.drawable.ic_back);
    toolbar.setNavigationContentDescription(android.R.string.cancel);
    toolbar.setNavigationOnClickListener(
        new View.OnClickListener() {
          @Override
          public void onClick(View view) {
            activity.finish();
          }
        });
  }
}
