// What the server's computing thread does beside computing: a session may be told of the device's
// heat, and a recording begin or end, between two of its calls only.
#include <exception>
#include <utility>

#include "base/code_name.h"
#include "engine_process/server.h"

namespace sapwood {

void Server::attend() {
  std::optional<sapwood_readings> readings;
  std::vector<TraceRequest> traces;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(sensors_are_news_, false)) readings = sensors_;
    traces.swap(traces_);
  }
  // Only this thread changes answerer_. A reading was checked when it came: there is no other
  // error.
  if (readings && answerer_ != nullptr) (void)answerer_->observe(*readings);
  for (const TraceRequest& trace : traces) {
    try {
      handle_trace(trace);
    } catch (const std::exception& error) {  // memory: a file is put together there
      send_error(trace.id, "exhausted", std::string("the engine failed: ") + error.what(), false);
    }
  }
}

void Server::handle_trace(const TraceRequest& request) {
  if (answerer_ == nullptr) {
    send_error(request.id, "not_loaded", "no bundle is loaded; load one", false);
    return;
  }
  size_t events = 0;
  uint64_t lost = 0;
  Status status = Status::okay();
  if (request.file) status = answerer_->save_trace(*request.file, &events, &lost);
  const Status changed = answerer_->start_trace(request.events);
  if (status.ok()) status = changed;
  traced_events_ = changed.ok() ? request.events : 0;
  if (!status.ok()) {
    send_error(request.id, code_name(status.code()), status.message(), false);
    return;
  }
  writer_.send(FrameType::kTraced, {{"id", request.id}, {"events", events}, {"lost", lost}});
}

void Server::resume_watching() {
  (void)answerer_->observe(sensors_);
  if (traced_events_ > 0 && !answerer_->start_trace(traced_events_).ok()) traced_events_ = 0;
}

}  // namespace sapwood
