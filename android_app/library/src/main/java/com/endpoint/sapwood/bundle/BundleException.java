package com.endpoint.sapwood.bundle;

/** Why a bundle was refused. */
public final class BundleException extends Exception {
  private static final long serialVersionUID = 1;

  /** What is wrong with it. */
  public enum Problem {
    /** No manifest.json: not a bundle, or not its folder. */
    NO_MANIFEST,
    /** manifest.json cannot be understood. */
    BAD_MANIFEST,
    /** Made for another version of Sapwood. */
    WRONG_VERSION,
    /** A file that the manifest names is not there. */
    MISSING_FILE,
    /** A file is longer or shorter than the manifest says. */
    WRONG_SIZE,
    /** A file is not the one that the manifest was written for. */
    WRONG_CHECKSUM,
    /** A name that would leave the bundle's folder. */
    UNSAFE_NAME,
    /** The device has not enough room for it. */
    NO_SPACE,
    /** It could not be read. */
    UNREADABLE,
    /** The import was cancelled. */
    CANCELLED
  }

  private final Problem problem;
  private final String file;

  /** @param file the name of what is wrong; "" where it has none */
  public BundleException(Problem problem, String file) {
    super(problem + ": " + file);
    this.problem = problem;
    this.file = file;
  }

  public Problem problem() {
    return problem;
  }

  public String file() {
    return file;
  }
}
