// The server's computing thread: loads and answers, one after the other.
#include <exception>
#include <utility>

#include "base/code_name.h"
#include "engine_process/server.h"

namespace sapwood {
namespace {

constexpr int kRoomMilliseconds = 20;

}  // namespace

void Server::compute() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wakes_.wait(lock, [&] { return ending_ || waiting_ || sensors_are_news_ || !traces_.empty(); });
    if (ending_) return;
    lock.unlock();
    attend();
    lock.lock();
    if (!waiting_) continue;  // nothing more to do, or cancelled meanwhile
    const Job job = std::move(*waiting_);
    waiting_.reset();
    computing_id_ = job.id;
    progress_ = Clock::now();
    lock.unlock();
    try {
      if (job.load) {
        load(job);
      } else {
        generate(job);
      }
    } catch (const std::exception& error) {  // memory, most of all: large prompts need it
      if (close_job(job.id)) {
        send_error(job.id, "exhausted", std::string("the engine failed: ") + error.what(), false);
      }
    }
    lock.lock();
    computing_id_ = 0;
  }
}

bool Server::close_job(int64_t id) {
  const std::lock_guard lock(mutex_);
  if (open_id_ != id) return false;
  open_id_ = 0;
  return true;
}

bool Server::send_part(int64_t id, FrameType type, const nlohmann::json& payload) {
  const std::lock_guard lock(mutex_);
  if (open_id_ != id) return false;
  writer_.send(type, payload, id);
  return true;
}

void Server::load(const Job& job) {
  const Clock::time_point begin = Clock::now();
  {
    std::unique_ptr<Answerer> previous;
    const std::lock_guard lock(mutex_);
    previous = std::move(answerer_);
  }
  Result<std::unique_ptr<Answerer>> opened = Answerer::open(job.options);
  if (!opened.ok()) {
    if (close_job(job.id)) {
      send_error(job.id, code_name(opened.status().code()), opened.status().message(), false);
    }
    return;
  }
  const Answerer& made = *opened.value();
  const nlohmann::json reply = {{"id", job.id},
                                {"name", made.model_name()},
                                {"host", made.host()},
                                {"threads", made.threads()},
                                {"context_length", made.context_length()},
                                {"vocabulary_size", made.vocabulary_size()},
                                {"chat", made.has_template()},
                                {"drafter", made.drafter()},
                                {"load_seconds", seconds_since(begin)}};
  const std::lock_guard lock(mutex_);
  if (open_id_ != job.id) return;  // cancelled: it is not kept
  open_id_ = 0;
  facts_ = {made.drafter(), made.host(), made.threads()};
  answerer_ = std::move(opened).value();
  resume_watching();
  writer_.send(FrameType::kLoaded, reply);
}

void Server::generate(const Job& job) {
  if (answerer_ == nullptr) {
    if (close_job(job.id)) send_error(job.id, "not_loaded", "no bundle is loaded; load one", false);
    return;
  }
  Clock::time_point snapshot = Clock::now();
  const Status status = answerer_->answer(
      job.request, {[&](int tokens) { return send_reading(job, tokens); },
                    [&](const std::string& text) { return send_step(job, text, &snapshot); }});
  if (!status.ok()) {
    if (close_job(job.id)) {
      send_error(job.id, code_name(status.code()), status.message(), false);
    }
    return;
  }
  if (job.snapshot_milliseconds > 0) send_snapshot(job);
  const std::lock_guard lock(mutex_);
  if (open_id_ != job.id) return;
  open_id_ = 0;
  nlohmann::json end =
      stats_json(answerer_->stats(), facts_, answerer_->first_token_seconds(), sensors_.celsius);
  end["id"] = job.id;
  end["stop_reason"] = answerer_->stop_reason();
  writer_.send(FrameType::kDone, end);
}

bool Server::send_reading(const Job& job, int prompt_tokens) {
  return send_part(job.id, FrameType::kReading, {{"id", job.id}, {"prompt_tokens", prompt_tokens}});
}

// Back pressure: no further step while the reader is behind.
bool Server::send_step(const Job& job, const std::string& text, Clock::time_point* snapshot) {
  attend();
  {
    const std::lock_guard lock(mutex_);
    progress_ = Clock::now();
    stats_ = answerer_->stats();
    first_token_seconds_ = answerer_->first_token_seconds();
  }
  if (!text.empty() && !send_part(job.id, FrameType::kText, {{"id", job.id}, {"text", text}})) {
    return false;
  }
  if (job.snapshot_milliseconds > 0 &&
      seconds_since(*snapshot) * 1000 >= job.snapshot_milliseconds) {
    send_snapshot(job);
    *snapshot = Clock::now();
  }
  while (!writer_.wait_for_room(kRoomMilliseconds)) {
    const std::lock_guard lock(mutex_);
    progress_ = Clock::now();  // waiting for the reader is no hang
    if (open_id_ != job.id) return false;
  }
  const std::lock_guard lock(mutex_);
  return open_id_ == job.id;
}

void Server::send_snapshot(const Job& job) {
  if (!writer_.wait_for_room(0)) return;
  nlohmann::json stats;
  {
    const std::lock_guard lock(mutex_);
    stats =
        stats_json(answerer_->stats(), facts_, answerer_->first_token_seconds(), sensors_.celsius);
  }
  stats["id"] = job.id;
  std::string emitted;
  const std::vector<TreeNode> nodes = answerer_->tree(&emitted);
  const nlohmann::json tree = {
      {"id", job.id}, {"step", stats["steps"]}, {"nodes", tree_json(nodes)}, {"emitted", emitted}};
  if (send_part(job.id, FrameType::kStats, stats)) send_part(job.id, FrameType::kTree, tree);
}

}  // namespace sapwood
