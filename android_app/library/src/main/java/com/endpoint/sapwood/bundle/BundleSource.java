package com.endpoint.sapwood.bundle;

import java.io.IOException;
import java.io.InputStream;

/** Where a bundle comes from. */
public interface BundleSource {
  /** Takes a bundle's files. */
  interface Receiver {
    /**
     * @param path below the source's top, with "/" between folders
     * @param content read at once; the source closes it
     */
    void receive(String path, InputStream content) throws IOException, BundleException;
  }

  /** How many bytes there are altogether; 0 if that is not known before. */
  long totalBytes() throws IOException;

  /** Hands over every file once, in any order. */
  void copyTo(Receiver receiver) throws IOException, BundleException;
}
