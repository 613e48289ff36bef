package com.endpoint.sapwood;

import android.app.Activity;
import android.os.Bundle;
import android.view.View;
import android.view.ViewGroup;
import android.view.WindowManager;
import android.widget.Button;
import android.widget.ProgressBar;
import android.widget.TextView;
import com.endpoint.sapwood.engine.DeviceMonitor;
import com.endpoint.sapwood.engine.Engine;
import com.endpoint.sapwood.engine.EngineException;

/** How fast each mode is on this device, and that all say the same. Runs while it is on screen. */
public final class BenchmarkActivity extends Activity implements Benchmark.Observer {
  private Benchmark benchmark;
  private boolean running;
  private DeviceMonitor device;
  private String heatAtStart = "";
  private TextView status;
  private Button start;

  @Override
  protected void onCreate(Bundle saved) {
    super.onCreate(saved);
    device = new DeviceMonitor(this);
    setContentView(R.layout.activity_benchmark);
    Screen.fit(this);
    Screen.addBackToolbar(this);
    status = findViewById(R.id.benchmark_status);
    start = findViewById(R.id.benchmark_start);
    start.setOnClickListener(
        new View.OnClickListener() {
          @Override
          public void onClick(View view) {
            startOrStop();
          }
        });
  }

  @Override
  protected void onStop() {
    stop();
    super.onStop();
  }

  private void startOrStop() {
    if (running) {
      stop();
      return;
    }
    Engine engine = SapwoodApplication.of(this).session().engineIfReady();
    if (engine == null) {
      show(getString(R.string.benchmark_failed, getString(R.string.problem_not_loaded)));
      return;
    }
    heatAtStart = heat();
    benchmark =
        new Benchmark(engine, getResources().getStringArray(R.array.benchmark_prompts), this);
    setRunning(true);
    benchmark.start();
  }

  private void stop() {
    if (running) {
      benchmark.stop();
      setRunning(false);
      show("");
    }
  }

  private void setRunning(boolean now) {
    running = now;
    start.setText(now ? R.string.cancel : R.string.benchmark_start);
    int flag = WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON;
    getWindow().setFlags(now ? flag : 0, flag);
  }

  private String heat() {
    Double celsius = device.read().celsius;
    return celsius == null
        ? getString(R.string.benchmark_no_temperature)
        : getString(R.string.benchmark_celsius, celsius);
  }

  private void show(String text) {
    status.setText(text);
    status.setVisibility(text.isEmpty() ? View.GONE : View.VISIBLE);
  }

  @Override
  public void onProgress() {
    int current = Math.min(benchmark.done() + 1, benchmark.total());
    show(getString(R.string.benchmark_running, current, benchmark.total()));
    showResults();
  }

  @Override
  public void onEnd(EngineException problem) {
    setRunning(false);
    show(
        problem == null
            ? getString(R.string.benchmark_done, heatAtStart, heat())
            : getString(R.string.benchmark_failed, Words.of(this, problem)));
  }

  private void showResults() {
    ViewGroup table = findViewById(R.id.benchmark_results);
    table.removeAllViews();
    double fastest = 0;
    for (Benchmark.Result result : benchmark.results()) {
      fastest = Math.max(fastest, result.isEmpty() ? 0 : result.tokensPerSecond());
    }
    for (Benchmark.Result result : benchmark.results()) {
      if (!result.isEmpty()) {
        View row = getLayoutInflater().inflate(R.layout.item_benchmark, table, false);
        table.addView(row);
        fill(row, result, fastest);
      }
    }
  }

  private void fill(View row, Benchmark.Result result, double fastest) {
    String[] modes = getResources().getStringArray(R.array.benchmark_modes);
    double speed = result.tokensPerSecond();
    double plain = benchmark.results().get(0).tokensPerSecond();
    boolean same = benchmark.isSameText(result);
    ((TextView) row.findViewById(R.id.result_mode)).setText(modes[result.mode.ordinal()]);
    TextView text = row.findViewById(R.id.result_text);
    text.setText(same ? R.string.benchmark_same : R.string.benchmark_different);
    ProgressBar bar = row.findViewById(R.id.result_bar);
    bar.setProgress((int) (bar.getMax() * speed / fastest));
    MetricStrip strip = row.findViewById(R.id.result_strip);
    add(strip, R.string.tokens_per_second, getString(R.string.one_decimal, speed));
    add(strip, R.string.benchmark_gain, getString(R.string.times, speed / plain));
    add(strip, R.string.tokens_per_step, getString(R.string.two_decimals, result.tokensPerStep()));
  }

  private void add(MetricStrip strip, int label, String value) {
    strip.set(strip.add(label), value, getString(R.string.labelled, getString(label), value));
  }
}
