package com.endpoint.sapwood.engine;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * The client of docs/engine-protocol.md over anything that can be started anew. Whatever is asked
 * of it happens in order on a thread of its own ({@link EngineLife}).
 */
class FramedEngine implements Engine {
  private final Loop loop = new Loop();
  private final EngineLife life;

  FramedEngine(
      Transport.Factory factory, Deadlines deadlines, Executor callbacks, Listener listener) {
    life = new EngineLife(factory, deadlines, loop, new Notices(callbacks, listener));
  }

  @Override
  public void load(final ModelOptions options) {
    loop.post(
        new Runnable() {
          @Override
          public void run() {
            life.load(options);
          }
        });
  }

  @Override
  public Answer generate(
      List<Message> conversation, GenerateOptions options, AnswerListener listener) {
    final Request asked = new Request(new ArrayList<>(conversation), options, listener);
    loop.post(
        new Runnable() {
          @Override
          public void run() {
            life.ask(asked);
          }
        });
    return new Answer() {
      @Override
      public void cancel() {
        loop.post(
            new Runnable() {
              @Override
              public void run() {
                life.cancel(asked);
              }
            });
      }
    };
  }

  @Override
  public void observe(final DeviceReadings readings) {
    loop.post(
        new Runnable() {
          @Override
          public void run() {
            life.observe(readings);
          }
        });
  }

  @Override
  public void startRecording(final RecordingListener listener) {
    loop.post(
        new Runnable() {
          @Override
          public void run() {
            life.startRecording(listener);
          }
        });
  }

  @Override
  public void saveRecording(final File file) {
    loop.post(
        new Runnable() {
          @Override
          public void run() {
            life.saveRecording(file);
          }
        });
  }

  @Override
  public void close() {
    loop.post(
        new Runnable() {
          @Override
          public void run() {
            life.close();
          }
        });
  }
}
