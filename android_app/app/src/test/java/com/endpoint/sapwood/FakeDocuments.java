package com.endpoint.sapwood;

import android.content.ContentProvider;
import android.content.ContentValues;
import android.database.Cursor;
import android.database.MatrixCursor;
import android.net.Uri;
import android.os.ParcelFileDescriptor;
import android.provider.DocumentsContract;
import android.provider.DocumentsContract.Document;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Map;
import java.util.TreeMap;

/** A folder as the system's file picker offers it. */
public final class FakeDocuments extends ContentProvider {
  static final String AUTHORITY = "com.endpoint.sapwood.documents";
  static final String ROOT = "root";
  static final Map<String, byte[]> files = new TreeMap<>();

  @Override
  public boolean onCreate() {
    return true;
  }

  @Override
  public Cursor query(Uri uri, String[] columns, String where, String[] values, String order) {
    MatrixCursor cursor = new MatrixCursor(columns);
    for (Map.Entry<String, byte[]> file : files.entrySet()) {
      MatrixCursor.RowBuilder row = cursor.newRow();
      row.add(Document.COLUMN_DOCUMENT_ID, file.getKey());
      row.add(Document.COLUMN_DISPLAY_NAME, file.getKey());
      row.add(Document.COLUMN_MIME_TYPE, "application/octet-stream");
      row.add(Document.COLUMN_SIZE, file.getValue().length);
    }
    return cursor;
  }

  @Override
  public ParcelFileDescriptor openFile(Uri uri, String mode) throws FileNotFoundException {
    try {
      File file = File.createTempFile("document", null, getContext().getCacheDir());
      Files.write(file.toPath(), files.get(DocumentsContract.getDocumentId(uri)));
      return ParcelFileDescriptor.open(file, ParcelFileDescriptor.MODE_READ_ONLY);
    } catch (IOException e) {
      throw new FileNotFoundException(e.getMessage());
    }
  }

  @Override
  public String getType(Uri uri) {
    return null;
  }

  @Override
  public Uri insert(Uri uri, ContentValues values) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int delete(Uri uri, String where, String[] values) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int update(Uri uri, ContentValues values, String where, String[] arguments) {
    throw new UnsupportedOperationException();
  }
}
