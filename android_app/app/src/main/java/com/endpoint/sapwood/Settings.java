package com.endpoint.sapwood;

import android.content.Context;
import android.content.SharedPreferences;
import com.endpoint.sapwood.engine.GenerateOptions;

/** What a person has chosen. */
public final class Settings {
  /** Where the engine runs. */
  public enum Host {
    PROCESS,
    LIBRARY
  }

  static final double HIGHEST_TEMPERATURE = 1.5;
  static final int LARGEST_BUDGET = 63; // guesses a step: beyond that no phone's cost curve pays
  static final int LONGEST_ANSWER = 2048;
  static final int LENGTH_STEP = 64;

  private static final String MODE = "mode";
  private static final String TEMPERATURE = "temperature";
  private static final String BUDGET = "budget";
  private static final String THREADS = "threads";
  private static final String LENGTH = "length";
  private static final String HOST = "host";
  private static final String BUNDLE = "bundle";
  private static final String TREE = "tree";

  private final SharedPreferences preferences;

  Settings(Context context) {
    preferences = context.getSharedPreferences("settings", Context.MODE_PRIVATE);
  }

  public GenerateOptions.Mode mode() {
    return choice(MODE, GenerateOptions.Mode.values(), GenerateOptions.Mode.DYNAMIC);
  }

  public void setMode(GenerateOptions.Mode mode) {
    preferences.edit().putString(MODE, mode.name()).apply();
  }

  public double temperature() {
    return preferences.getFloat(TEMPERATURE, 0);
  }

  public void setTemperature(double temperature) {
    preferences.edit().putFloat(TEMPERATURE, (float) temperature).apply();
  }

  public int budget() {
    return preferences.getInt(BUDGET, 31);
  }

  public void setBudget(int guesses) {
    preferences.edit().putInt(BUDGET, guesses).apply();
  }

  /** 0: as many as the engine thinks best. */
  public int threads() {
    return preferences.getInt(THREADS, 0);
  }

  public void setThreads(int threads) {
    preferences.edit().putInt(THREADS, threads).apply();
  }

  public int length() {
    return preferences.getInt(LENGTH, 512);
  }

  public void setLength(int tokens) {
    preferences.edit().putInt(LENGTH, tokens).apply();
  }

  public Host host() {
    return choice(HOST, Host.values(), Host.PROCESS);
  }

  public void setHost(Host host) {
    preferences.edit().putString(HOST, host.name()).apply();
  }

  /** The folder name of the chosen bundle; "" before there is one. */
  public String bundle() {
    return preferences.getString(BUNDLE, "");
  }

  public void setBundle(String name) {
    preferences.edit().putString(BUNDLE, name).apply();
  }

  public boolean showsTree() {
    return preferences.getBoolean(TREE, true);
  }

  public void setShowsTree(boolean shows) {
    preferences.edit().putBoolean(TREE, shows).apply();
  }

  /** A choice that an older or newer version of the app wrote falls back to the default. */
  private <T extends Enum<T>> T choice(String key, T[] values, T otherwise) {
    String name = preferences.getString(key, "");
    for (T value : values) {
      if (value.name().equals(name)) {
        return value;
      }
    }
    return otherwise;
  }
}
