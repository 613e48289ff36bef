// The engine's side of docs/engine-protocol.md on two file descriptors.
//
// Three threads: one reads requests and answers what needs no computing (hello, ping, cancel), one
// computes, one writes (FrameWriter). So a cancel or a ping is never behind a pass of the model,
// and a reader that is slow stops the computing, not the answering.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine_process/answerer.h"
#include "engine_process/frame.h"
#include "engine_process/frame_writer.h"
#include "engine_process/requests.h"

namespace sapwood {

enum class ServeEnd { kShutdown = 0, kProtocol = 3, kVersion = 4 };  // exit statuses

class Server {
 public:
  Server(int input, int output);
  ~Server();  // waits for a pass that is running
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until shutdown, the end of the input, or what is not the protocol; *why is a line for a person
  // where that is so. What was queued has been written, or nobody has read it for a while.
  ServeEnd run(std::string* why);

 private:
  struct Job {
    int64_t id = 0;
    bool load = false;
    AnswererOptions options;
    AnswerRequest request;
    int snapshot_milliseconds = 0;
  };

  // On the reading thread.
  std::optional<ServeEnd> read_some(FrameReader* reader, std::string* why);
  std::optional<ServeEnd> handle(const Frame& frame, std::string* why);
  std::optional<ServeEnd> hello(const JsonObject& request, std::string* why);
  Status handle_request(FrameType type, const JsonObject& request, const std::string& payload,
                        int64_t id);
  void cancel(int64_t id);
  void pong(int64_t id);
  void repeat_cancel();
  void send_error(int64_t id, std::string_view code, const std::string& message, bool fatal);

  // On the computing thread.
  void compute();
  void load(const Job& job);
  void generate(const Job& job);
  bool send_reading(const Job& job, int prompt_tokens);
  bool send_step(const Job& job, const std::string& text, Clock::time_point* snapshot);
  void send_snapshot(const Job& job);
  // What may be done between two steps, and where nothing is computed: hands sensor readings to the
  // session, and begins and ends recordings.
  void attend();
  void handle_trace(const TraceRequest& request);
  void resume_watching();  // in a session that is new

  // The rest, which other threads may see too: whether the answer is still wanted.
  bool send_part(int64_t id, FrameType type, const nlohmann::json& payload);
  // Whether this call closed it: then its end may be sent.
  bool close_job(int64_t id);

  const int input_;
  FrameWriter writer_;
  bool greeted_ = false;

  std::mutex mutex_;  // of all that follows
  std::condition_variable wakes_;
  bool ending_ = false;
  std::optional<Job> waiting_;  // not begun yet
  sapwood_readings sensors_;    // the latest
  bool sensors_are_news_ = false;
  std::vector<TraceRequest> traces_;  // not begun yet
  int64_t open_id_ = 0;               // whose end has not been sent; 0: none
  int64_t computing_id_ = 0;          // what the computing thread is at; may be cancelled already
  bool open_is_load_ = false;
  Clock::time_point progress_;  // of computing_id_
  std::unique_ptr<Answerer> answerer_;
  LoadedFacts facts_;
  sapwood_stats stats_ = {};  // of the open answer, after its latest step
  double first_token_seconds_ = 0;
  int32_t traced_events_ = 0;  // the computing thread's own: how many it records
  std::thread thread_;
};

}  // namespace sapwood
