package com.endpoint.sapwood;

import android.app.Activity;
import android.os.Bundle;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.AdapterView;
import android.widget.ArrayAdapter;
import android.widget.SeekBar;
import android.widget.Spinner;
import android.widget.TextView;
import com.endpoint.sapwood.engine.GenerateOptions;
import com.endpoint.sapwood.engine.ModelInfo;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Mode, temperature, budget, threads, length and host. They hold from the next answer on. */
public final class SettingsActivity extends Activity {
  private static final double TEMPERATURE_STEP = 0.05;

  /** One number that a slider sets. */
  private abstract static class Number {
    final int title;
    final int detail;
    final int most;

    /** @param detail 0: none */
    Number(int title, int detail, int most) {
      this.title = title;
      this.detail = detail;
      this.most = most;
    }

    abstract int get();

    abstract void set(int place);

    abstract String text(int place);
  }

  /** One of several. */
  private abstract static class Choice {
    final int title;
    final int detail;

    Choice(int title, int detail) {
      this.title = title;
      this.detail = detail;
    }

    abstract List<String> names();

    abstract int get();

    abstract void set(int place);
  }

  private Settings settings;
  private ViewGroup page;

  @Override
  protected void onCreate(Bundle saved) {
    super.onCreate(saved);
    settings = SapwoodApplication.of(this).settings();
    setContentView(R.layout.activity_settings);
    Screen.fit(this);
    Screen.addBackToolbar(this);
    page = findViewById(R.id.settings);
    addMode();
    addTemperature();
    addBudget();
    addThreads();
    addLength();
    addHost();
    addAbout();
  }

  @Override
  protected void onStop() {
    SapwoodApplication.of(this).session().applySettings();
    super.onStop();
  }

  private void addMode() {
    add(
        new Choice(R.string.setting_mode, R.string.setting_mode_detail) {
          @Override
          List<String> names() {
            return Arrays.asList(getResources().getStringArray(R.array.modes));
          }

          @Override
          int get() {
            return settings.mode().ordinal();
          }

          @Override
          void set(int place) {
            settings.setMode(GenerateOptions.Mode.values()[place]);
          }
        });
  }

  private void addTemperature() {
    int most = (int) Math.round(Settings.HIGHEST_TEMPERATURE / TEMPERATURE_STEP);
    add(
        new Number(R.string.setting_temperature, R.string.setting_temperature_detail, most) {
          @Override
          int get() {
            return (int) Math.round(settings.temperature() / TEMPERATURE_STEP);
          }

          @Override
          void set(int place) {
            settings.setTemperature(place * TEMPERATURE_STEP);
          }

          @Override
          String text(int place) {
            return getString(R.string.two_decimals, place * TEMPERATURE_STEP);
          }
        });
  }

  private void addBudget() {
    add(
        new Number(
            R.string.setting_budget, R.string.setting_budget_detail, Settings.LARGEST_BUDGET - 1) {
          @Override
          int get() {
            return settings.budget() - 1;
          }

          @Override
          void set(int place) {
            settings.setBudget(place + 1);
          }

          @Override
          String text(int place) {
            return getString(R.string.whole_number, place + 1);
          }
        });
  }

  private void addThreads() {
    int cores = Runtime.getRuntime().availableProcessors();
    add(
        new Number(R.string.setting_threads, 0, cores) {
          @Override
          int get() {
            return settings.threads();
          }

          @Override
          void set(int place) {
            settings.setThreads(place);
          }

          @Override
          String text(int place) {
            return place == 0
                ? getString(R.string.setting_threads_auto)
                : getString(R.string.whole_number, place);
          }
        });
  }

  private void addLength() {
    add(
        new Number(
            R.string.setting_length, 0, Settings.LONGEST_ANSWER / Settings.LENGTH_STEP - 1) {
          @Override
          int get() {
            return settings.length() / Settings.LENGTH_STEP - 1;
          }

          @Override
          void set(int place) {
            settings.setLength((place + 1) * Settings.LENGTH_STEP);
          }

          @Override
          String text(int place) {
            return getString(R.string.whole_number, (place + 1) * Settings.LENGTH_STEP);
          }
        });
  }

  private void addHost() {
    final List<Settings.Host> hosts = Hosts.available(this);
    if (hosts.size() < 2) {
      return; // nothing to choose between
    }
    add(
        new Choice(R.string.setting_host, R.string.setting_host_detail) {
          @Override
          List<String> names() {
            List<String> names = new ArrayList<>();
            for (Settings.Host host : hosts) {
              boolean process = host == Settings.Host.PROCESS;
              names.add(getString(process ? R.string.host_process : R.string.host_library));
            }
            return names;
          }

          @Override
          int get() {
            return Math.max(hosts.indexOf(settings.host()), 0);
          }

          @Override
          void set(int place) {
            settings.setHost(hosts.get(place));
          }
        });
  }

  private void addAbout() {
    ModelInfo model = SapwoodApplication.of(this).session().model();
    if (model != null) {
      View view = addRow(0, 0);
      TextView detail = view.findViewById(R.id.setting_detail);
      detail.setVisibility(View.VISIBLE);
      detail.setText(
          getString(
              R.string.about_engine,
              model.kernels,
              model.drafter,
              model.threads,
              model.contextLength));
    }
  }

  private View addRow(int title, int detail) {
    View row = LayoutInflater.from(this).inflate(R.layout.setting, page, false);
    TextView titleView = row.findViewById(R.id.setting_title);
    TextView detailView = row.findViewById(R.id.setting_detail);
    if (title != 0) {
      titleView.setText(title);
    }
    if (detail != 0) {
      detailView.setText(detail);
    }
    detailView.setVisibility(detail == 0 ? View.GONE : View.VISIBLE);
    page.addView(row);
    return row;
  }

  private void add(final Number number) {
    View row = addRow(number.title, number.detail);
    final TextView value = row.findViewById(R.id.setting_value);
    value.setText(number.text(number.get()));
    SeekBar bar = new SeekBar(this);
    bar.setId(number.title); // a resource's number: its own, and the same after a rotation
    bar.setMax(number.most);
    bar.setProgress(number.get());
    bar.setContentDescription(getString(number.title));
    bar.setOnSeekBarChangeListener(
        new SeekBar.OnSeekBarChangeListener() {
          @Override
          public void onProgressChanged(SeekBar changed, int place, boolean fromUser) {
            number.set(place);
            value.setText(number.text(place));
          }

          @Override
          public void onStartTrackingTouch(SeekBar touched) {}

          @Override
          public void onStopTrackingTouch(SeekBar touched) {}
        });
    ViewGroup control = row.findViewById(R.id.setting_control);
    // Its height is said: a bar takes no notice of a least one.
    control.addView(bar, ViewGroup.LayoutParams.MATCH_PARENT, thumbBreadth());
  }

  private void add(final Choice choice) {
    View row = addRow(choice.title, choice.detail);
    Spinner spinner = new Spinner(this);
    spinner.setId(choice.title);
    ArrayAdapter<String> names =
        new ArrayAdapter<>(this, android.R.layout.simple_spinner_item, choice.names());
    names.setDropDownViewResource(android.R.layout.simple_spinner_dropdown_item);
    spinner.setAdapter(names);
    spinner.setSelection(choice.get());
    spinner.setContentDescription(getString(choice.title));
    spinner.setOnItemSelectedListener(
        new AdapterView.OnItemSelectedListener() {
          @Override
          public void onItemSelected(AdapterView<?> parent, View view, int place, long id) {
            choice.set(place);
          }

          @Override
          public void onNothingSelected(AdapterView<?> parent) {}
        });
    ViewGroup control = row.findViewById(R.id.setting_control);
    spinner.setMinimumHeight(thumbBreadth());
    control.addView(
        spinner, ViewGroup.LayoutParams.MATCH_PARENT, ViewGroup.LayoutParams.WRAP_CONTENT);
  }

  private int thumbBreadth() {
    return (int) (48 * getResources().getDisplayMetrics().density);
  }
}
