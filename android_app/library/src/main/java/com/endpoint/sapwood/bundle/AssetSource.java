package com.endpoint.sapwood.bundle;

import android.content.res.AssetFileDescriptor;
import android.content.res.AssetManager;
import java.io.IOException;
import java.io.InputStream;

/** The bundle that was packed into the app, if one was (scripts/build_apk --bundle). */
public final class AssetSource implements BundleSource {
  /** Its folder among the assets. */
  public static final String FOLDER = "bundle";

  private interface Visitor {
    void visit(String path, String asset) throws IOException, BundleException;
  }

  private final AssetManager assets;

  public AssetSource(AssetManager assets) {
    this.assets = assets;
  }

  public boolean exists() {
    try {
      return assets.list(FOLDER).length > 0;
    } catch (IOException e) {
      return false;
    }
  }

  @Override
  public long totalBytes() throws IOException {
    final long[] total = {0};
    try {
      walk(
          "",
          new Visitor() {
            @Override
            public void visit(String path, String asset) throws IOException {
              try (AssetFileDescriptor descriptor = assets.openFd(asset)) {
                total[0] += descriptor.getLength();
              }
            }
          });
    } catch (BundleException e) {
      throw new IOException(e);
    }
    return total[0];
  }

  @Override
  public void copyTo(final Receiver receiver) throws IOException, BundleException {
    walk(
        "",
        new Visitor() {
          @Override
          public void visit(String path, String asset) throws IOException, BundleException {
            try (InputStream content = assets.open(asset, AssetManager.ACCESS_STREAMING)) {
              receiver.receive(path, content);
            }
          }
        });
  }

  private void walk(String prefix, Visitor visitor) throws IOException, BundleException {
    String folder = prefix.isEmpty() ? FOLDER : FOLDER + "/" + prefix;
    for (String name : assets.list(folder)) {
      String path = prefix.isEmpty() ? name : prefix + "/" + name;
      if (assets.list(FOLDER + "/" + path).length > 0) {
        walk(path, visitor);
      } else {
        visitor.visit(path, FOLDER + "/" + path);
      }
    }
  }
}
