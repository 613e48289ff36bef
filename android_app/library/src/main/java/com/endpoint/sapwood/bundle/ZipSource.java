package com.endpoint.sapwood.bundle;

import android.content.ContentResolver;
import android.content.res.AssetFileDescriptor;
import android.net.Uri;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/** A bundle's folder in one zip file. */
public final class ZipSource implements BundleSource {
  private final ContentResolver resolver;
  private final Uri file;

  /** @param file what ACTION_OPEN_DOCUMENT returned */
  public ZipSource(ContentResolver resolver, Uri file) {
    this.resolver = resolver;
    this.file = file;
  }

  /** Of the zip file: weights hardly shrink in it. */
  @Override
  public long totalBytes() throws IOException {
    try (AssetFileDescriptor descriptor = resolver.openAssetFileDescriptor(file, "r")) {
      long length = descriptor == null ? 0 : descriptor.getLength();
      return Math.max(length, 0);
    } catch (FileNotFoundException e) {
      return 0; // a provider that offers only a stream; if not even that, copying says so
    }
  }

  @Override
  public void copyTo(Receiver receiver) throws IOException, BundleException {
    try (InputStream stream = resolver.openInputStream(file)) {
      if (stream == null) {
        throw new FileNotFoundException(file.getLastPathSegment());
      }
      ZipInputStream zip = new ZipInputStream(stream);
      int files = 0;
      for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
        if (!entry.isDirectory()) {
          receiver.receive(entry.getName(), zip);
          files++;
        }
      }
      if (files == 0) {
        throw new BundleException(BundleException.Problem.NO_MANIFEST, "");
      }
    }
  }
}
