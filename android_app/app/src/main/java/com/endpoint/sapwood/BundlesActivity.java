package com.endpoint.sapwood;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.ActivityNotFoundException;
import android.content.DialogInterface;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.text.format.Formatter;
import android.view.View;
import android.view.ViewGroup;
import android.widget.AdapterView;
import android.widget.BaseAdapter;
import android.widget.ListView;
import android.widget.ProgressBar;
import android.widget.RadioButton;
import android.widget.TextView;
import com.endpoint.sapwood.bundle.BundleSource;
import com.endpoint.sapwood.bundle.BundleStore;
import com.endpoint.sapwood.bundle.DocumentTreeSource;
import com.endpoint.sapwood.bundle.ZipSource;
import java.io.File;
import java.util.ArrayList;
import java.util.List;

/** The models on this device: choose, import, delete. */
public final class BundlesActivity extends Activity implements Models.Observer {
  static final int PICK_FOLDER = 1;
  static final int PICK_ZIP = 2;

  private Models models;
  private final List<File> bundles = new ArrayList<>();
  private final BundleAdapter adapter = new BundleAdapter();

  @Override
  protected void onCreate(Bundle saved) {
    super.onCreate(saved);
    models = SapwoodApplication.of(this).models();
    setContentView(R.layout.activity_bundles);
    Screen.fit(this);
    Screen.addBackToolbar(this);
    ListView list = findViewById(R.id.bundles);
    list.setAdapter(adapter);
    list.setEmptyView(findViewById(R.id.bundles_empty));
    list.setOnItemClickListener(
        new AdapterView.OnItemClickListener() {
          @Override
          public void onItemClick(AdapterView<?> parent, View view, int place, long id) {
            models.choose(bundles.get(place));
          }
        });
    onClick(
        R.id.import_folder,
        new Runnable() {
          @Override
          public void run() {
            pick(new Intent(Intent.ACTION_OPEN_DOCUMENT_TREE), PICK_FOLDER);
          }
        });
    onClick(
        R.id.import_zip,
        new Runnable() {
          @Override
          public void run() {
            Intent intent = new Intent(Intent.ACTION_OPEN_DOCUMENT);
            intent.addCategory(Intent.CATEGORY_OPENABLE);
            intent.setType("application/zip");
            pick(intent, PICK_ZIP);
          }
        });
    onClick(
        R.id.import_cancel,
        new Runnable() {
          @Override
          public void run() {
            models.cancelImport();
          }
        });
  }

  private void onClick(int view, final Runnable action) {
    findViewById(view)
        .setOnClickListener(
            new View.OnClickListener() {
              @Override
              public void onClick(View clicked) {
                action.run();
              }
            });
  }

  private void pick(Intent intent, int request) {
    try {
      startActivityForResult(intent, request);
    } catch (ActivityNotFoundException e) { // a device without the system's file picker
      show(getString(R.string.import_refused, getString(R.string.bundle_unreadable)));
    }
  }

  @Override
  protected void onActivityResult(int request, int result, Intent data) {
    super.onActivityResult(request, result, data);
    Uri uri = data == null ? null : data.getData();
    if (result == RESULT_OK && uri != null) {
      BundleSource source =
          request == PICK_FOLDER
              ? new DocumentTreeSource(getContentResolver(), uri)
              : new ZipSource(getContentResolver(), uri);
      models.startImport(source);
    }
  }

  @Override
  protected void onStart() {
    super.onStart();
    models.observe(this);
    onModelsChanged();
  }

  @Override
  protected void onStop() {
    models.forget(this);
    super.onStop();
  }

  @Override
  public void onModelsChanged() {
    bundles.clear();
    bundles.addAll(models.bundles());
    adapter.notifyDataSetChanged();

    boolean importing = models.isImporting();
    findViewById(R.id.import_progress).setVisibility(importing ? View.VISIBLE : View.GONE);
    findViewById(R.id.import_folder).setEnabled(!importing);
    findViewById(R.id.import_zip).setEnabled(!importing);
    if (importing) {
      showProgress();
    }
    if (models.refused() != null) {
      show(getString(R.string.import_refused, Words.of(this, models.refused())));
    } else if (models.imported() != null) {
      show(getString(R.string.imported, models.imported().getName()));
    } else {
      show("");
    }
  }

  private void showProgress() {
    String copied = Formatter.formatShortFileSize(this, models.copiedBytes());
    String total = Formatter.formatShortFileSize(this, models.totalBytes());
    boolean known = models.totalBytes() > 0;
    ((TextView) findViewById(R.id.import_text))
        .setText(
            known
                ? getString(R.string.importing, copied, total)
                : getString(R.string.importing_unknown, copied));
    ProgressBar bar = findViewById(R.id.import_bar);
    bar.setIndeterminate(!known);
    if (known) {
      long place = bar.getMax() * models.copiedBytes() / models.totalBytes();
      bar.setProgress((int) Math.min(bar.getMax(), place));
    }
  }

  private void show(String result) {
    TextView view = findViewById(R.id.import_result);
    view.setText(result);
    view.setVisibility(result.isEmpty() ? View.GONE : View.VISIBLE);
  }

  private void askToDelete(final File bundle) {
    new AlertDialog.Builder(this)
        .setMessage(getString(R.string.delete_model, bundle.getName()))
        .setNegativeButton(R.string.cancel, null)
        .setPositiveButton(
            R.string.delete,
            new DialogInterface.OnClickListener() {
              @Override
              public void onClick(DialogInterface dialog, int which) {
                models.delete(bundle);
              }
            })
        .show();
  }

  /** The models that are installed. */
  private final class BundleAdapter extends BaseAdapter {
    @Override
    public int getCount() {
      return bundles.size();
    }

    @Override
    public File getItem(int position) {
      return bundles.get(position);
    }

    @Override
    public long getItemId(int position) {
      return position;
    }

    @Override
    public View getView(int position, View old, ViewGroup parent) {
      View view = old;
      if (view == null) {
        view = getLayoutInflater().inflate(R.layout.item_bundle, parent, false);
      }
      final File bundle = getItem(position);
      boolean chosen = bundle.equals(models.chosen());
      ((RadioButton) view.findViewById(R.id.bundle_chosen)).setChecked(chosen);
      ((TextView) view.findViewById(R.id.bundle_name)).setText(bundle.getName());
      ((TextView) view.findViewById(R.id.bundle_detail)).setText(detail(bundle, chosen));
      View delete = view.findViewById(R.id.bundle_delete);
      delete.setContentDescription(getString(R.string.delete_model_named, bundle.getName()));
      delete.setOnClickListener(
          new View.OnClickListener() {
            @Override
            public void onClick(View clicked) {
              askToDelete(bundle);
            }
          });
      return view;
    }

    private String detail(File bundle, boolean chosen) {
      String size =
          Formatter.formatShortFileSize(BundlesActivity.this, BundleStore.bytesOf(bundle));
      boolean drafted = BundleStore.draftOf(bundle) != null;
      String detail = drafted ? getString(R.string.model_size_draft, size) : size;
      return chosen ? getString(R.string.model_in_use, detail) : detail;
    }
  }
}
