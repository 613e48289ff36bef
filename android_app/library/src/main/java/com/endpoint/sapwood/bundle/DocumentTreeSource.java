package com.endpoint.sapwood.bundle;

import android.content.ContentResolver;
import android.database.Cursor;
import android.net.Uri;
import android.provider.DocumentsContract;
import android.provider.DocumentsContract.Document;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;

/** A folder that was chosen with the system's file picker, and the folders directly in it. */
public final class DocumentTreeSource implements BundleSource {
  private static final String[] COLUMNS = {
    Document.COLUMN_DOCUMENT_ID,
    Document.COLUMN_DISPLAY_NAME,
    Document.COLUMN_MIME_TYPE,
    Document.COLUMN_SIZE
  };
  private static final int DEEPEST = 2;

  private interface Visitor {
    void visit(String path, Uri document, long bytes) throws IOException, BundleException;
  }

  private final ContentResolver resolver;
  private final Uri tree;

  /** @param tree what ACTION_OPEN_DOCUMENT_TREE returned */
  public DocumentTreeSource(ContentResolver resolver, Uri tree) {
    this.resolver = resolver;
    this.tree = tree;
  }

  @Override
  public long totalBytes() throws IOException {
    final long[] total = {0};
    try {
      walk(
          DocumentsContract.getTreeDocumentId(tree),
          "",
          1,
          new Visitor() {
            @Override
            public void visit(String path, Uri document, long bytes) {
              total[0] += bytes;
            }
          });
    } catch (BundleException e) {
      throw new IOException(e);
    }
    return total[0];
  }

  @Override
  public void copyTo(final Receiver receiver) throws IOException, BundleException {
    walk(
        DocumentsContract.getTreeDocumentId(tree),
        "",
        1,
        new Visitor() {
          @Override
          public void visit(String path, Uri document, long bytes)
              throws IOException, BundleException {
            try (InputStream content = resolver.openInputStream(document)) {
              if (content == null) {
                throw new FileNotFoundException(path);
              }
              receiver.receive(path, content);
            }
          }
        });
  }

  private void walk(String folder, String prefix, int depth, Visitor visitor)
      throws IOException, BundleException {
    Uri children = DocumentsContract.buildChildDocumentsUriUsingTree(tree, folder);
    try (Cursor cursor = resolver.query(children, COLUMNS, null, null, null)) {
      if (cursor == null) {
        throw new FileNotFoundException(prefix);
      }
      while (cursor.moveToNext()) {
        String id = cursor.getString(0);
        String path = prefix + cursor.getString(1);
        if (!Document.MIME_TYPE_DIR.equals(cursor.getString(2))) {
          Uri document = DocumentsContract.buildDocumentUriUsingTree(tree, id);
          visitor.visit(path, document, cursor.getLong(3));
        } else if (depth < DEEPEST) {
          walk(id, path + "/", depth + 1, visitor);
        }
      }
    }
  }
}
