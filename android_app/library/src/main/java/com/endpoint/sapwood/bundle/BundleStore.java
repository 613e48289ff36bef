package com.endpoint.sapwood.bundle;

import com.endpoint.sapwood.bundle.BundleException.Problem;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The bundles that are installed: a folder of whole ones. */
public final class BundleStore {
  /** Where a bundle's trained draft lies in its folder. */
  public static final String DRAFT = "draft";

  private final File folder;

  public BundleStore(File folder) {
    this.folder = folder;
  }

  /** Folders of the bundles that are there, by name. */
  public List<File> bundles() {
    List<File> found = new ArrayList<>();
    File[] children = folder.listFiles();
    if (children != null) {
      Arrays.sort(children);
      for (File child : children) {
        if (!isTemporary(child) && new File(child, BundleManifest.NAME).isFile()) {
          found.add(child);
        }
      }
    }
    return found;
  }

  /** The draft that came with a bundle, or null. */
  public static File draftOf(File bundle) {
    File draft = new File(bundle, DRAFT);
    return new File(draft, BundleManifest.NAME).isFile() ? draft : null;
  }

  /** How many bytes a bundle takes. */
  public static long bytesOf(File file) {
    long total = file.length();
    File[] children = file.listFiles();
    if (children != null) {
      total = 0;
      for (File child : children) {
        total += bytesOf(child);
      }
    }
    return total;
  }

  public static boolean delete(File file) {
    File[] children = file.listFiles();
    if (children != null) {
      for (File child : children) {
        delete(child);
      }
    }
    return file.delete();
  }

  /**
   * Copies a bundle in and checks every file against its manifest; only a whole one is kept, and
   * one of the same name is replaced by it.
   *
   * @return its folder
   */
  public File install(BundleSource source, BundleCopy.Progress progress) throws BundleException {
    clean();
    File temporary = new File(folder, TEMPORARY);
    if (!temporary.mkdirs()) {
      throw new BundleException(Problem.NO_SPACE, folder.getName());
    }
    try {
      BundleCopy copy = new BundleCopy(temporary, progress);
      File checked = copy.take(source);
      File target = new File(folder, folderName(BundleManifest.read(checked).name));
      delete(target);
      if (!checked.renameTo(target)) {
        throw new BundleException(Problem.UNREADABLE, target.getName());
      }
      return target;
    } finally {
      clean();
    }
  }

  private static final String TEMPORARY = ".importing";

  private static boolean isTemporary(File child) {
    return child.getName().equals(TEMPORARY);
  }

  private void clean() {
    delete(new File(folder, TEMPORARY));
  }

  /** A name that is a folder name everywhere: letters, digits, "-", "_" and ".". */
  static String folderName(String name) {
    String plain = name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9._-]+", "-");
    plain = plain.replaceAll("^[.-]+", "");
    return plain.isEmpty() ? "bundle" : plain.substring(0, Math.min(plain.length(), 80));
  }
}
