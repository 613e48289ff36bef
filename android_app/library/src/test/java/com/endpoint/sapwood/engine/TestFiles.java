package com.endpoint.sapwood.engine;

import static org.junit.Assume.assumeTrue;

import java.io.File;

/** What scripts/test_android gives the tests: this machine's engine, and a bundle. */
public final class TestFiles {
  private TestFiles() {}

  /** The folder that stands for Android's native library folder. */
  public static File nativeLibraries() {
    return given("sapwood.native");
  }

  /** The default bundle. */
  public static File bundle() {
    return given("sapwood.bundle");
  }

  /** The draft that was trained for it. */
  public static File draft() {
    return given("sapwood.draft");
  }

  private static File given(String property) {
    String path = System.getProperty(property, "");
    assumeTrue(property + " is not set: run scripts/test_android", !path.isEmpty());
    return new File(path);
  }
}
