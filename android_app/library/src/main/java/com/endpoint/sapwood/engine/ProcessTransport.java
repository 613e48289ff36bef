package com.endpoint.sapwood.engine;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/** An engine process and its pipes. */
final class ProcessTransport implements Transport {
  private static final int LONGEST_LAST_LINE = 400;

  /** Starts `sapwood_engine serve`. */
  static final class Starter implements Factory {
    private final File executable;

    Starter(File executable) {
      this.executable = executable;
    }

    @Override
    public Transport start() throws IOException {
      return new ProcessTransport(new ProcessBuilder(executable.getPath(), "serve").start());
    }
  }

  private final Process process;
  private volatile String lastLine = "";

  private ProcessTransport(Process process) {
    this.process = process;
    Thread thread =
        new Thread("sapwood-errors") {
          @Override
          public void run() {
            readErrors();
          }
        };
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public InputStream input() {
    return process.getInputStream();
  }

  @Override
  public OutputStream output() {
    return process.getOutputStream();
  }

  @Override
  public void destroy() {
    process.destroyForcibly();
  }

  @Override
  public String epitaph() {
    try {
      if (!process.waitFor(1, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return "the engine closed its output";
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "the engine ended";
    }
    String status = "the engine ended with status " + process.exitValue();
    return lastLine.isEmpty() ? status : status + ": " + lastLine;
  }

  /** Keeps what the engine or the system's loader said last, and the pipe empty. */
  private void readErrors() {
    try (BufferedReader errors =
        new BufferedReader(
            new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
      for (String line = errors.readLine(); line != null; line = errors.readLine()) {
        lastLine = line.length() > LONGEST_LAST_LINE ? line.substring(0, LONGEST_LAST_LINE) : line;
      }
    } catch (IOException e) {
      // The process has gone; what it said before stands.
    }
  }
}
