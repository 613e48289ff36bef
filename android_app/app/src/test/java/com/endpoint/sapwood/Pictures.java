package com.endpoint.sapwood;

import android.app.Activity;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Color;
import android.view.View;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;

/** Draws screens into PNG files, for people to look at, and says what is on them. */
final class Pictures {
  private static final File FOLDER =
      new File(System.getProperty("sapwood.pictures", "build/android/pictures"));

  private Pictures() {}

  static Bitmap take(Activity activity, String name) throws IOException {
    View view = activity.getWindow().getDecorView();
    Bitmap bitmap = Bitmap.createBitmap(view.getWidth(), view.getHeight(), Bitmap.Config.ARGB_8888);
    view.draw(new Canvas(bitmap));
    FOLDER.mkdirs();
    try (FileOutputStream out = new FileOutputStream(new File(FOLDER, name + ".png"))) {
      bitmap.compress(Bitmap.CompressFormat.PNG, 100, out);
    }
    return bitmap;
  }

  /** How many of the pixels of a view are, within a little, of a colour. */
  static int count(Bitmap picture, View view, int colour) {
    int[] at = new int[2];
    view.getLocationInWindow(at);
    int found = 0;
    for (int y = at[1]; y < Math.min(at[1] + view.getHeight(), picture.getHeight()); y++) {
      for (int x = at[0]; x < Math.min(at[0] + view.getWidth(), picture.getWidth()); x++) {
        found += isNear(picture.getPixel(x, y), colour) ? 1 : 0;
      }
    }
    return found;
  }

  private static boolean isNear(int one, int other) {
    return Math.abs(Color.red(one) - Color.red(other)) < 12
        && Math.abs(Color.green(one) - Color.green(other)) < 12
        && Math.abs(Color.blue(one) - Color.blue(other)) < 12;
  }
}
