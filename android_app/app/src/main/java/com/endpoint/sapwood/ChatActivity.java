package com.endpoint.sapwood;

import android.app.Activity;
import android.content.ClipData;
import android.content.ClipboardManager;
import android.content.Intent;
import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.view.LayoutInflater;
import android.view.MenuItem;
import android.view.View;
import android.view.ViewGroup;
import android.widget.AdapterView;
import android.widget.Button;
import android.widget.EditText;
import android.widget.ImageButton;
import android.widget.ListView;
import android.widget.TextView;
import android.widget.Toast;
import android.widget.Toolbar;
import com.endpoint.sapwood.engine.DeviceMonitor;
import com.endpoint.sapwood.engine.DeviceReadings;
import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.ModelInfo;

/** The conversation. */
public final class ChatActivity extends Activity
    implements ChatSession.Observer, Models.Observer {
  private static final int FRAME_MILLISECONDS = 40; // the text is laid out anew at most so often
  private static final int SENSOR_MILLISECONDS = 1000; // as often as the governor wants

  private final Handler handler = new Handler(Looper.getMainLooper());
  private ChatSession session;
  private Models models;
  private Settings settings;
  private DeviceMonitor device;

  private Toolbar toolbar;
  private ListView list;
  private MessageAdapter adapter;
  private EditText input;
  private ImageButton send;
  private MetricsPanel panel;
  private TraceButton trace;
  private boolean textIsStale;
  private boolean wasAnswering;

  private final Runnable showText =
      new Runnable() {
        @Override
        public void run() {
          textIsStale = false;
          adapter.notifyDataSetChanged();
        }
      };

  private final Runnable lookAtSensors =
      new Runnable() {
        @Override
        public void run() {
          DeviceReadings readings = device.read();
          session.observe(readings);
          panel.showHeat(readings);
          handler.postDelayed(this, SENSOR_MILLISECONDS);
        }
      };

  @Override
  protected void onCreate(Bundle saved) {
    super.onCreate(saved);
    SapwoodApplication application = SapwoodApplication.of(this);
    session = application.session();
    models = application.models();
    settings = application.settings();
    device = new DeviceMonitor(this);

    setContentView(R.layout.activity_chat);
    Screen.fit(this);
    toolbar = findViewById(R.id.toolbar);
    list = findViewById(R.id.messages);
    input = findViewById(R.id.message);
    send = findViewById(R.id.send);
    panel = new MetricsPanel(this);
    adapter = new MessageAdapter(this, session);
    list.setAdapter(adapter);
    addMenu();
    trace =
        new TraceButton(this, toolbar.getMenu().findItem(R.id.menu_trace), application.trace());
    addSuggestions();
    listen();
    wasAnswering = session.isAnswering();
  }

  @Override
  protected void onStart() {
    super.onStart();
    session.observe(this);
    models.observe(this);
    models.unpackIfNeeded();
    session.applySettings();
    panel.setTreeShown(settings.showsTree());
    onSessionChanged();
    onMetricsChanged();
    trace.start();
    lookAtSensors.run();
  }

  @Override
  protected void onStop() {
    handler.removeCallbacks(lookAtSensors);
    handler.removeCallbacks(showText);
    textIsStale = false;
    session.forget(this);
    models.forget(this);
    trace.stop();
    super.onStop();
  }

  @Override
  protected void onActivityResult(int request, int result, Intent data) {
    super.onActivityResult(request, result, data);
    if (request == TraceButton.PICK_PLACE) {
      trace.onResult(result, data);
    }
  }

  // ---- what a person does ----

  private void addMenu() {
    toolbar.inflateMenu(R.menu.chat);
    toolbar.setOnMenuItemClickListener(
        new Toolbar.OnMenuItemClickListener() {
          @Override
          public boolean onMenuItemClick(MenuItem item) {
            return choose(item.getItemId());
          }
        });
  }

  private boolean choose(int item) {
    if (item == R.id.menu_new) {
      session.startAnew();
    } else if (item == R.id.menu_tree) {
      settings.setShowsTree(!settings.showsTree());
      panel.setTreeShown(settings.showsTree());
    } else if (item == R.id.menu_trace) {
      trace.press();
    } else if (item == R.id.menu_models) {
      startActivity(new Intent(this, BundlesActivity.class));
    } else if (item == R.id.menu_settings) {
      startActivity(new Intent(this, SettingsActivity.class));
    } else if (item == R.id.menu_benchmark) {
      startActivity(new Intent(this, BenchmarkActivity.class));
    } else {
      return false;
    }
    return true;
  }

  private void addSuggestions() {
    ViewGroup welcome = findViewById(R.id.welcome_content);
    for (final String suggestion : getResources().getStringArray(R.array.suggestions)) {
      TextView view =
          (TextView) LayoutInflater.from(this).inflate(R.layout.suggestion, welcome, false);
      view.setText(suggestion);
      view.setOnClickListener(
          new View.OnClickListener() {
            @Override
            public void onClick(View clicked) {
              session.send(suggestion);
            }
          });
      welcome.addView(view);
    }
  }

  private void listen() {
    send.setOnClickListener(
        new View.OnClickListener() {
          @Override
          public void onClick(View view) {
            sendOrStop();
          }
        });
    findViewById(R.id.banner_action)
        .setOnClickListener(
            new View.OnClickListener() {
              @Override
              public void onClick(View view) {
                startActivity(new Intent(ChatActivity.this, BundlesActivity.class));
              }
            });
    list.setOnItemLongClickListener(
        new AdapterView.OnItemLongClickListener() {
          @Override
          public boolean onItemLongClick(AdapterView<?> parent, View view, int place, long id) {
            copy(adapter.getItem(place).text.toString());
            return true;
          }
        });
  }

  private void sendOrStop() {
    if (session.isAnswering()) {
      session.stop();
    } else if (!input.getText().toString().trim().isEmpty()) {
      session.send(input.getText().toString());
      input.setText("");
    }
  }

  private void copy(String text) {
    ClipboardManager clipboard = (ClipboardManager) getSystemService(CLIPBOARD_SERVICE);
    clipboard.setPrimaryClip(ClipData.newPlainText(getString(R.string.app_name), text));
    Toast.makeText(this, R.string.copied, Toast.LENGTH_SHORT).show();
  }

  // ---- what happens ----

  @Override
  public void onSessionChanged() {
    boolean answering = session.isAnswering();
    boolean empty = session.messages().isEmpty();
    findViewById(R.id.welcome).setVisibility(empty ? View.VISIBLE : View.GONE);
    send.setImageResource(answering ? R.drawable.ic_stop : R.drawable.ic_send);
    send.setContentDescription(getString(answering ? R.string.stop : R.string.send));
    toolbar.setTitle(R.string.app_name);
    toolbar.setSubtitle(subtitle());
    showBanner();
    adapter.notifyDataSetChanged();
    if (wasAnswering && !answering && !empty) {
      list.announceForAccessibility(getString(R.string.answer_finished));
    }
    wasAnswering = answering;
  }

  @Override
  public void onAnswerGrew() {
    if (!textIsStale) {
      textIsStale = true;
      handler.postDelayed(showText, FRAME_MILLISECONDS);
    }
  }

  @Override
  public void onMetricsChanged() {
    panel.show(session.stats(), session.tree());
  }

  @Override
  public void onModelsChanged() {
    showBanner();
  }

  private String subtitle() {
    ModelInfo model = session.model();
    if (model != null) {
      return model.name;
    }
    switch (session.state()) {
      case LOADING:
        return getString(R.string.state_loading);
      case RESTARTING:
        return getString(R.string.state_restarting);
      case FAILED:
        return getString(R.string.state_failed);
      default:
        return getString(R.string.state_empty);
    }
  }

  private void showBanner() {
    String text = bannerText();
    boolean canImport = models.chosen() == null && !models.isImporting();
    findViewById(R.id.banner).setVisibility(text.isEmpty() ? View.GONE : View.VISIBLE);
    ((TextView) findViewById(R.id.banner_text)).setText(text);
    Button action = findViewById(R.id.banner_action);
    action.setVisibility(canImport ? View.VISIBLE : View.GONE);
    action.setText(R.string.banner_import);
  }

  private String bannerText() {
    if (models.isImporting() && models.chosen() == null) {
      long total = Math.max(models.totalBytes(), 1);
      int percent = (int) Math.min(100, 100 * models.copiedBytes() / total);
      return getString(R.string.banner_unpacking, percent);
    }
    if (models.chosen() == null) {
      return getString(R.string.banner_no_model);
    }
    if (session.state() == Engine.State.RESTARTING) {
      return getString(R.string.banner_restarting, Words.brief(this, session.problem()));
    }
    return session.state() == Engine.State.FAILED ? Words.of(this, session.problem()) : "";
  }
}
