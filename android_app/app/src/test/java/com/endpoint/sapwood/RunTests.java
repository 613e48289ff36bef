package com.endpoint.sapwood;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs the tests in a folder, or those whose names contain a word; a line for each. */
public final class RunTests {
  private RunTests() {}

  /** Prints each test as it ends. */
  private static final class Printer extends RunListener {
    private long began;
    private String outcome;

    @Override
    public void testStarted(Description test) {
      began = System.nanoTime();
      outcome = "passed";
    }

    @Override
    public void testFailure(Failure failure) {
      outcome = "FAILED";
      System.out.println(failure.getTrace());
    }

    @Override
    public void testAssumptionFailure(Failure failure) {
      outcome = "skipped: " + failure.getMessage();
    }

    @Override
    public void testFinished(Description test) {
      double seconds = (System.nanoTime() - began) / 1e9;
      String name = test.getTestClass().getSimpleName() + "." + test.getMethodName();
      System.out.printf("%-8s %5.1f s  %s%n", outcome, seconds, name);
    }
  }

  /** @param arguments the folder with the test classes, and perhaps a word */
  public static void main(String[] arguments) throws Exception {
    File folder = new File(arguments[0]);
    final String word = arguments.length > 1 ? arguments[1] : "";
    Filter named =
        new Filter() {
          @Override
          public boolean shouldRun(Description description) {
            return description.isSuite()
                ? description.getChildren().stream().anyMatch(this::shouldRun)
                : description.getDisplayName().contains(word);
          }

          @Override
          public String describe() {
            return "named " + word;
          }
        };
    JUnitCore core = new JUnitCore();
    core.addListener(new Printer());
    Request request = Request.classes(testClasses(folder));
    Result result = core.run(word.isEmpty() ? request : request.filterWith(named));
    int failed = result.getFailureCount();
    int skipped = result.getAssumptionFailureCount() + result.getIgnoreCount();
    System.out.printf(
        "Android: %d passed, %d failed, %d skipped%n",
        result.getRunCount() - failed - result.getAssumptionFailureCount(), failed, skipped);
    System.exit(failed > 0 || result.getRunCount() == 0 ? 1 : 0); // engines may still be running
  }

  private static Class<?>[] testClasses(File folder) throws IOException, ClassNotFoundException {
    Path top = folder.toPath();
    try (Stream<Path> files = Files.walk(top)) {
      List<String> names =
          files
              .map(file -> top.relativize(file).toString())
              .filter(file -> file.endsWith("Test.class"))
              .map(file -> file.replace(".class", "").replace(File.separatorChar, '.'))
              .sorted()
              .collect(Collectors.toList());
      Class<?>[] classes = new Class<?>[names.size()];
      for (int i = 0; i < classes.length; i++) {
        classes[i] = Class.forName(names.get(i));
      }
      return classes;
    }
  }
}
