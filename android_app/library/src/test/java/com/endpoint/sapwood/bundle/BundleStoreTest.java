package com.endpoint.sapwood.bundle;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import com.endpoint.sapwood.bundle.BundleException.Problem;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.LinkedHashMap;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public class BundleStoreTest {
  private static final BundleCopy.Progress GO_ON = (copied, total) -> true;

  @Rule public final TemporaryFolder temporary = new TemporaryFolder();

  private final Map<String, byte[]> files = new LinkedHashMap<>();
  private BundleStore store;
  private File folder;

  @Before
  public void makeABundle() throws Exception {
    folder = new File(temporary.getRoot(), "bundles");
    store = new BundleStore(folder);
    files.put("target.weights", new byte[] {1, 2, 3, 4});
    files.put("tokenizer.json", "{}".getBytes(StandardCharsets.UTF_8));
    files.put("manifest.json", manifest("My Model", "target.weights", "tokenizer.json"));
  }

  private byte[] manifest(String name, String... listed) throws Exception {
    JSONArray list = new JSONArray();
    for (String file : listed) {
      byte[] content = files.get(file);
      StringBuilder digest = new StringBuilder();
      for (byte value : MessageDigest.getInstance("SHA-256").digest(content)) {
        digest.append(String.format("%02x", value));
      }
      String bare = file.substring(file.lastIndexOf('/') + 1);
      list.put(
          new JSONObject()
              .put("name", bare)
              .put("bytes", content.length)
              .put("sha256", digest.toString()));
    }
    JSONObject json = new JSONObject().put("schema_version", 1).put("name", name);
    return json.put("files", list).toString().getBytes(StandardCharsets.UTF_8);
  }

  private final BundleSource source =
      new BundleSource() {
        @Override
        public long totalBytes() {
          return 0;
        }

        @Override
        public void copyTo(Receiver receiver) throws IOException, BundleException {
          for (Map.Entry<String, byte[]> file : files.entrySet()) {
            receiver.receive(file.getKey(), new ByteArrayInputStream(file.getValue()));
          }
        }
      };

  private void assertRefused(Problem problem, String file) {
    BundleException refused =
        assertThrows(BundleException.class, () -> store.install(source, GO_ON));
    assertEquals(problem, refused.problem());
    assertEquals(file, refused.file());
    assertTrue(store.bundles().isEmpty());
    assertEquals("nothing is left behind", 0, folder.list().length);
  }

  @Test
  public void aWholeBundleIsInstalledUnderItsName() throws Exception {
    File bundle = store.install(source, GO_ON);
    assertEquals("my-model", bundle.getName());
    assertEquals(1, store.bundles().size());
    byte[] weights = Files.readAllBytes(new File(bundle, "target.weights").toPath());
    assertArrayEquals(files.get("target.weights"), weights);
    assertNull(BundleStore.draftOf(bundle));
  }

  @Test
  public void aBundleInAFolderOfTheArchiveIsFound() throws Exception {
    Map<String, byte[]> deeper = new LinkedHashMap<>();
    files.forEach((name, content) -> deeper.put("smollm2/" + name, content));
    files.clear();
    files.putAll(deeper);
    assertEquals("my-model", store.install(source, GO_ON).getName());
  }

  @Test
  public void itsDraftIsCheckedTooAndComesWithIt() throws Exception {
    files.put("draft/draft.weights", new byte[] {9});
    files.put("draft/manifest.json", manifest("Draft", "draft/draft.weights"));
    assertNotNull(BundleStore.draftOf(store.install(source, GO_ON)));
    store = new BundleStore(folder = new File(temporary.getRoot(), "others"));
    files.put("draft/draft.weights", new byte[] {8});
    assertRefused(Problem.WRONG_CHECKSUM, "draft.weights");
  }

  @Test
  public void aNewOneOfTheSameNameReplacesTheOld() throws Exception {
    store.install(source, GO_ON);
    files.put("target.weights", new byte[] {5, 6});
    files.put("manifest.json", manifest("My Model", "target.weights", "tokenizer.json"));
    File bundle = store.install(source, GO_ON);
    assertEquals(1, store.bundles().size());
    assertEquals(2, new File(bundle, "target.weights").length());
  }

  @Test
  public void aBrokenOneLeavesTheOldOneAlone() throws Exception {
    File bundle = store.install(source, GO_ON);
    files.put("target.weights", new byte[] {5, 6});
    assertThrows(BundleException.class, () -> store.install(source, GO_ON));
    assertEquals(4, new File(bundle, "target.weights").length());
    assertEquals(1, folder.list().length);
  }

  @Test
  public void aFolderWithoutAManifestIsNoBundle() {
    files.remove("manifest.json");
    assertRefused(Problem.NO_MANIFEST, "");
  }

  @Test
  public void aManifestThatIsNotJsonIsRefused() {
    files.put("manifest.json", "{\"schema_version\": 1,".getBytes(StandardCharsets.UTF_8));
    assertRefused(Problem.BAD_MANIFEST, "manifest.json");
  }

  @Test
  public void aManifestNestedTooDeepIsRefused() {
    files.put("manifest.json", "[".repeat(1_000_000).getBytes(StandardCharsets.UTF_8));
    assertRefused(Problem.BAD_MANIFEST, "manifest.json");
  }

  @Test
  public void aManifestOfAnotherVersionIsRefused() {
    String text = new String(files.get("manifest.json"), StandardCharsets.UTF_8);
    text = text.replace("\"schema_version\":1", "\"schema_version\":2");
    files.put("manifest.json", text.getBytes(StandardCharsets.UTF_8));
    assertRefused(Problem.WRONG_VERSION, "manifest.json");
  }

  @Test
  public void aFileThatIsMissingIsNamed() {
    files.remove("target.weights");
    assertRefused(Problem.MISSING_FILE, "target.weights");
  }

  @Test
  public void aFileThatWasCutOffIsNamed() {
    files.put("target.weights", new byte[] {1, 2, 3});
    assertRefused(Problem.WRONG_SIZE, "target.weights");
  }

  @Test
  public void aFileWithAFlippedBitIsNamed() {
    files.put("target.weights", new byte[] {1, 2, 3, 5});
    assertRefused(Problem.WRONG_CHECKSUM, "target.weights");
  }

  @Test
  public void aNameThatLeavesTheFolderIsRefused() {
    for (String name : new String[] {"../evil", "a/../../evil", "/evil", "a//b", "a\\b", "."}) {
      files.put(name, new byte[] {1});
      assertRefused(Problem.UNSAFE_NAME, name);
      files.remove(name);
      assertEquals(1, temporary.getRoot().list().length);
    }
  }

  @Test
  public void aManifestCannotNameAFileOutsideTheBundle() throws Exception {
    String text = new String(files.get("manifest.json"), StandardCharsets.UTF_8);
    text = text.replace("\"target.weights\"", "\"../bundles/.importing/target.weights\"");
    files.put("manifest.json", text.getBytes(StandardCharsets.UTF_8));
    assertRefused(Problem.MISSING_FILE, "../bundles/.importing/target.weights");
  }

  @Test
  public void anImportThatIsCancelledLeavesNothing() {
    BundleException refused =
        assertThrows(
            BundleException.class, () -> store.install(source, (copied, total) -> false));
    assertEquals(Problem.CANCELLED, refused.problem());
    assertEquals(0, folder.list().length);
  }

  @Test
  public void folderNamesAreHarmless() {
    assertEquals("smollm2-135m-instruct", BundleStore.folderName("SmolLM2-135M-Instruct"));
    assertEquals("a-b", BundleStore.folderName("../a/b"));
    assertEquals("bundle", BundleStore.folderName("..."));
    assertEquals("bundle", BundleStore.folderName("\u6728"));
  }
}
