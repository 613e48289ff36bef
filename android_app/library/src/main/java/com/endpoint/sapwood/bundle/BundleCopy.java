package com.endpoint.sapwood.bundle;

import com.endpoint.sapwood.bundle.BundleException.Problem;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** Copies a bundle into a folder, digesting on the way, and compares it with its manifest. */
public final class BundleCopy implements BundleSource.Receiver {
  /** Hears how far a copy is; called on the copying thread. */
  public interface Progress {
    /**
     * @param totalBytes 0 if not known
     * @return whether to go on
     */
    boolean onProgress(long copiedBytes, long totalBytes);
  }

  private static final int BUFFER = 1 << 18;
  private static final int MOST_FILES = 256;
  private static final long SPARE_BYTES = 64 << 20; // what is left free for the rest of the device

  private final File folder;
  private final Progress progress;
  private final Map<File, String> digests = new HashMap<>();
  private long totalBytes;
  private long copiedBytes;

  BundleCopy(File folder, Progress progress) {
    this.folder = folder;
    this.progress = progress;
  }

  /** @return the folder that holds manifest.json: ours, or the only one in it that has one */
  File take(BundleSource source) throws BundleException {
    try {
      totalBytes = source.totalBytes();
      needRoomFor(totalBytes);
      source.copyTo(this);
    } catch (IOException | RuntimeException e) { // other apps' providers throw what they like
      throw new BundleException(Problem.UNREADABLE, String.valueOf(e.getMessage()));
    }
    File top = findTop();
    check(top);
    File draft = BundleStore.draftOf(top);
    if (draft != null) {
      check(draft);
    }
    return top;
  }

  @Override
  public void receive(String path, InputStream content) throws IOException, BundleException {
    File target = place(path);
    if (digests.size() >= MOST_FILES) {
      throw new BundleException(Problem.BAD_MANIFEST, path);
    }
    target.getParentFile().mkdirs();
    DigestInputStream digesting = new DigestInputStream(content, sha256());
    byte[] buffer = new byte[BUFFER];
    try (OutputStream out = new FileOutputStream(target)) {
      for (int count = digesting.read(buffer); count >= 0; count = digesting.read(buffer)) {
        needRoomFor(count);
        out.write(buffer, 0, count);
        copiedBytes += count;
        if (!progress.onProgress(copiedBytes, totalBytes)) {
          throw new BundleException(Problem.CANCELLED, "");
        }
      }
    }
    digests.put(target, hex(digesting.getMessageDigest().digest()));
  }

  private void needRoomFor(long bytes) throws BundleException {
    if (folder.getUsableSpace() < bytes + SPARE_BYTES) {
      throw new BundleException(Problem.NO_SPACE, "");
    }
  }

  /** Where a path of the source goes; never out of our folder, never twice to the same place. */
  private File place(String path) throws BundleException {
    File target = folder;
    for (String part : path.split("/", -1)) {
      boolean plain = !part.isEmpty() && !part.equals(".") && !part.equals("..");
      if (!plain || part.indexOf('\\') >= 0 || part.indexOf('\0') >= 0) {
        throw new BundleException(Problem.UNSAFE_NAME, path);
      }
      target = new File(target, part);
    }
    if (digests.containsKey(target)) {
      throw new BundleException(Problem.UNSAFE_NAME, path);
    }
    return target;
  }

  private File findTop() throws BundleException {
    if (new File(folder, BundleManifest.NAME).isFile()) {
      return folder;
    }
    File top = null;
    File[] children = folder.listFiles();
    for (File child : children == null ? new File[0] : children) {
      if (new File(child, BundleManifest.NAME).isFile()) {
        if (top != null) {
          throw new BundleException(Problem.NO_MANIFEST, "");
        }
        top = child;
      }
    }
    if (top == null) {
      throw new BundleException(Problem.NO_MANIFEST, "");
    }
    return top;
  }

  private void check(File top) throws BundleException {
    BundleManifest manifest = BundleManifest.read(top);
    if (manifest.files.isEmpty()) {
      throw new BundleException(Problem.BAD_MANIFEST, BundleManifest.NAME);
    }
    for (BundleManifest.Entry entry : manifest.files) {
      File file = new File(top, entry.name);
      String digest = digests.get(file);
      if (digest == null) {
        throw new BundleException(Problem.MISSING_FILE, entry.name);
      }
      if (file.length() != entry.bytes) {
        throw new BundleException(Problem.WRONG_SIZE, entry.name);
      }
      if (!digest.equals(entry.sha256.toLowerCase(Locale.ROOT))) {
        throw new BundleException(Problem.WRONG_CHECKSUM, entry.name);
      }
    }
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every Java platform has SHA-256", e);
    }
  }

  private static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte value : bytes) {
      text.append(String.format(Locale.ROOT, "%02x", value));
    }
    return text.toString();
  }
}
