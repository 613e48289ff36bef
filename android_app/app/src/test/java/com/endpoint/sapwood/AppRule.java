package com.endpoint.sapwood;

import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.content.Intent;
import android.os.BatteryManager;
import com.endpoint.sapwood.bundle.BundleStore;
import com.endpoint.sapwood.engine.TestFiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.junit.rules.ExternalResource;
import org.robolectric.Robolectric;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;

/** The app on a device: with this machine's engine, a battery, and, if wanted, a bundle. */
final class AppRule extends ExternalResource {
  static final String PHONE = "w393dp-h851dp-xhdpi";

  private final List<ActivityController<?>> open = new ArrayList<>();

  @Override
  protected void before() {
    SapwoodApplication application = application();
    application.getApplicationInfo().nativeLibraryDir = TestFiles.nativeLibraries().getPath();
    Intent battery = new Intent(Intent.ACTION_BATTERY_CHANGED);
    application.sendStickyBroadcast(battery.putExtra(BatteryManager.EXTRA_TEMPERATURE, 312));
  }

  @Override
  protected void after() {
    for (ActivityController<?> controller : open) {
      if (!controller.get().isDestroyed()) {
        controller.pause().stop().destroy();
      }
    }
    for (File bundle : application().models().bundles()) {
      for (File link : bundle.listFiles()) {
        link.delete(); // refused where it is no link
      }
      bundle.delete();
    }
    application().session().applySettings(); // closes the engine
  }

  static SapwoodApplication application() {
    return (SapwoodApplication) RuntimeEnvironment.getApplication();
  }

  static ChatSession session() {
    return application().session();
  }

  /** The folder in which installed bundles lie. */
  static File bundles() {
    return new File(application().getFilesDir(), "bundles");
  }

  /** Puts the default bundle, with its draft, where the app would have unpacked it. */
  static void installBundle() throws IOException {
    File folder = new File(bundles(), "smollm2-135m-instruct");
    folder.mkdirs();
    for (File file : TestFiles.bundle().listFiles()) {
      link(file, new File(folder, file.getName()));
    }
    link(TestFiles.draft(), new File(folder, BundleStore.DRAFT));
    application().settings().setThreads(1);
  }

  private static void link(File target, File link) throws IOException {
    Files.createSymbolicLink(link.toPath(), target.toPath().toAbsolutePath());
  }

  <A extends Activity> A open(Class<A> activity) {
    return control(activity).get();
  }

  <A extends Activity> ActivityController<A> control(Class<A> activity) {
    ActivityController<A> controller = Robolectric.buildActivity(activity).setup();
    open.add(controller);
    return controller;
  }

  /** The chat, with a model that is loaded. */
  ActivityController<ChatActivity> openChat() throws Exception {
    installBundle();
    ActivityController<ChatActivity> controller = control(ChatActivity.class);
    Waiting.until("a model", () -> session().model() != null);
    return controller;
  }

  static void idle() {
    shadowOf(android.os.Looper.getMainLooper()).idle();
  }
}
