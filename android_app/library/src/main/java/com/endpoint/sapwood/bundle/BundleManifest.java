package com.endpoint.sapwood.bundle;

import com.endpoint.sapwood.bundle.BundleException.Problem;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** What manifest.json says about the files beside it. The engine reads the rest of it. */
final class BundleManifest {
  static final String NAME = "manifest.json";
  private static final int SCHEMA_VERSION = 1;
  private static final long LONGEST = 64 << 20; // bytes: far beyond what the exporter writes

  /** One file of the list. */
  static final class Entry {
    final String name;
    final long bytes;
    final String sha256;

    private Entry(JSONObject json) throws JSONException {
      name = json.getString("name");
      bytes = json.getLong("bytes");
      sha256 = json.getString("sha256");
    }
  }

  final String name;
  final List<Entry> files = new ArrayList<>();

  private BundleManifest(JSONObject json) throws JSONException {
    name = json.getString("name");
    JSONArray array = json.getJSONArray("files");
    for (int i = 0; i < array.length(); i++) {
      files.add(new Entry(array.getJSONObject(i)));
    }
  }

  static BundleManifest read(File folder) throws BundleException {
    File file = new File(folder, NAME);
    if (!file.isFile()) {
      throw new BundleException(Problem.NO_MANIFEST, folder.getName());
    }
    try {
      if (file.length() > LONGEST) {
        throw new BundleException(Problem.BAD_MANIFEST, NAME);
      }
      String text = new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8);
      JSONObject json = new JSONObject(text);
      if (json.getInt("schema_version") != SCHEMA_VERSION) {
        throw new BundleException(Problem.WRONG_VERSION, NAME);
      }
      return new BundleManifest(json);
    } catch (IOException e) {
      throw new BundleException(Problem.UNREADABLE, NAME);
    } catch (JSONException | StackOverflowError e) { // JSON nested a hundred thousand deep
      throw new BundleException(Problem.BAD_MANIFEST, NAME);
    }
  }
}
