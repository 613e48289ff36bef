package com.endpoint.sapwood;

import android.content.Context;
import android.os.Handler;
import android.os.Looper;
import com.endpoint.sapwood.bundle.AssetSource;
import com.endpoint.sapwood.bundle.BundleCopy;
import com.endpoint.sapwood.bundle.BundleException;
import com.endpoint.sapwood.bundle.BundleSource;
import com.endpoint.sapwood.bundle.BundleStore;
import java.io.File;
import java.util.ArrayList;
import java.util.List;

/** The bundles on this device, and the import that is running, if one is. Main thread only. */
public final class Models {
  /** Hears of progress and of every change. */
  public interface Observer {
    void onModelsChanged();
  }

  private static final int LEAST_MILLISECONDS_BETWEEN_REPORTS = 100;

  private final Handler main = new Handler(Looper.getMainLooper());
  private final List<Observer> observers = new ArrayList<>();
  private final BundleStore store;
  private final Settings settings;
  private final AssetSource packed;

  private boolean importing;
  private volatile boolean cancelled;
  private long copiedBytes;
  private long totalBytes;
  private BundleException refused; // why the latest import failed
  private File imported; // what the latest import brought

  Models(Context context, Settings settings) {
    this.settings = settings;
    store = new BundleStore(new File(context.getFilesDir(), "bundles"));
    packed = new AssetSource(context.getAssets());
  }

  public void observe(Observer observer) {
    observers.add(observer);
  }

  public void forget(Observer observer) {
    observers.remove(observer);
  }

  public List<File> bundles() {
    return store.bundles();
  }

  /** The one that was chosen, else the first; null if there is none. */
  public File chosen() {
    List<File> bundles = store.bundles();
    for (File bundle : bundles) {
      if (bundle.getName().equals(settings.bundle())) {
        return bundle;
      }
    }
    return bundles.isEmpty() ? null : bundles.get(0);
  }

  public void choose(File bundle) {
    settings.setBundle(bundle.getName());
    changed();
  }

  public void delete(File bundle) {
    BundleStore.delete(bundle);
    changed();
  }

  public boolean isImporting() {
    return importing;
  }

  public long copiedBytes() {
    return copiedBytes;
  }

  /** 0 if not known. */
  public long totalBytes() {
    return totalBytes;
  }

  public BundleException refused() {
    return refused;
  }

  public File imported() {
    return imported;
  }

  public void cancelImport() {
    cancelled = true;
  }

  /** Installs the bundle that the app brings with it, if it does and there is no other yet. */
  public void unpackIfNeeded() {
    if (!importing && refused == null && store.bundles().isEmpty() && packed.exists()) {
      startImport(packed);
    }
  }

  /** Copies and checks a bundle in the background; one at a time. */
  public void startImport(final BundleSource source) {
    if (importing) {
      return;
    }
    importing = true;
    cancelled = false;
    refused = null;
    imported = null;
    copiedBytes = 0;
    totalBytes = 0;
    changed();
    new Thread("sapwood-import") {
      @Override
      public void run() {
        try {
          finish(store.install(source, new Reporter()), null);
        } catch (BundleException e) {
          finish(null, e);
        }
      }
    }.start();
  }

  private void finish(final File bundle, final BundleException problem) {
    main.post(
        new Runnable() {
          @Override
          public void run() {
            importing = false;
            refused = problem;
            imported = bundle;
            if (bundle != null) {
              settings.setBundle(bundle.getName());
            }
            changed();
          }
        });
  }

  private void changed() {
    for (Observer observer : new ArrayList<>(observers)) {
      observer.onModelsChanged();
    }
  }

  /** Tells the main thread now and then how far the copy is. */
  private final class Reporter implements BundleCopy.Progress {
    private long latest;

    @Override
    public boolean onProgress(final long copied, final long total) {
      long now = System.nanoTime() / 1_000_000;
      if (now - latest >= LEAST_MILLISECONDS_BETWEEN_REPORTS) {
        latest = now;
        main.post(
            new Runnable() {
              @Override
              public void run() {
                if (importing) {
                  copiedBytes = copied;
                  totalBytes = total;
                  changed();
                }
              }
            });
      }
      return !cancelled;
    }
  }
}
