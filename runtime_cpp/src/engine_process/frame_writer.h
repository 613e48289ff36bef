// Writes frames to a file descriptor on a thread of its own, so that whoever sends never waits for
// a reader unless it asks to.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "engine_process/frame.h"

namespace sapwood {

class FrameWriter {
 public:
  explicit FrameWriter(int descriptor);
  ~FrameWriter();  // writes what is queued, unless the reader is gone
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  // Queues a frame. `answer`: the id of the answer it is a part of, for drop(); 0: of none.
  void send(FrameType type, const nlohmann::json& payload, int64_t answer = 0);

  // Forgets the queued parts of an answer. A frame that is being written is finished.
  void drop(int64_t answer);

  // Waits until little is queued, or the wait is over, or the reader is gone. Whether there is
  // room.
  bool wait_for_room(int milliseconds);
  // Waits until nothing is queued or being written; for at most so long.
  void wait_until_written(int milliseconds);

  size_t queued_frames() const;
  bool broken() const;  // nobody reads any more

 private:
  struct Queued {
    std::string bytes;
    int64_t answer;
  };

  void run();
  bool write_all(const std::string& bytes);

  const int descriptor_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;
  bool writing_ = false;
  bool broken_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace sapwood
