#include "engine_process/frame_writer.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace sapwood {
namespace {

constexpr size_t kMostQueuedBytes = size_t{256} << 10;

}  // namespace

FrameWriter::FrameWriter(int descriptor) : descriptor_(descriptor), thread_([this] { run(); }) {}

FrameWriter::~FrameWriter() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FrameWriter::send(FrameType type, const nlohmann::json& payload, int64_t answer) {
  std::string bytes = make_frame(type, payload);
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
    queued_bytes_ += bytes.size();
    queue_.push_back({std::move(bytes), answer});
  }
  changed_.notify_all();
}

void FrameWriter::drop(int64_t answer) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const Queued& queued) {
      const bool gone = queued.answer == answer;
      if (gone) queued_bytes_ -= queued.bytes.size();
      return gone;
    });
  }
  changed_.notify_all();
}

bool FrameWriter::wait_for_room(int milliseconds) {
  std::unique_lock lock(mutex_);
  const auto room = [&] { return broken_ || queued_bytes_ < kMostQueuedBytes; };
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), room);
  return room();
}

void FrameWriter::wait_until_written(int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                    [&] { return broken_ || (queue_.empty() && !writing_); });
}

size_t FrameWriter::queued_frames() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

bool FrameWriter::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

void FrameWriter::run() {
  sigset_t pipe;  // a reader that is gone is an error of write(), not a signal
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    writing_ = true;
    lock.unlock();
    const bool written = write_all(next.bytes);
    lock.lock();
    writing_ = false;
    queued_bytes_ -= next.bytes.size();
    if (!written) {
      broken_ = true;
      queue_.clear();
      queued_bytes_ = 0;
    }
    changed_.notify_all();
    if (broken_) return;
  }
}

bool FrameWriter::write_all(const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace sapwood
