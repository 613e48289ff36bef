#include "engine_process/server.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/code_name.h"
#include "kernels/kernels.h"

namespace sapwood {
namespace {

constexpr size_t kMostUnreadReplies = 1000;
constexpr int kTickMilliseconds = 20;
constexpr int kLastWordsMilliseconds = 50;  // for what is queued when the end comes

sapwood_readings no_readings() {
  sapwood_readings readings;
  sapwood_readings_init(&readings, sizeof(readings));
  return readings;
}

}  // namespace

Server::Server(int input, int output)
    : input_(input), writer_(output), sensors_(no_readings()), thread_([this] { compute(); }) {}

Server::~Server() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    open_id_ = 0;
    waiting_.reset();
    if (answerer_ != nullptr) answerer_->cancel();
  }
  wakes_.notify_all();
  thread_.join();
}

ServeEnd Server::run(std::string* why) {
  FrameReader reader;
  std::optional<ServeEnd> end;
  while (!end) {
    repeat_cancel();
    // A client that reads nothing is not read either; only its end is waited for.
    const bool reads = writer_.queued_frames() < kMostUnreadReplies;
    pollfd input = {input_, static_cast<short>(reads ? POLLIN : 0), 0};
    const int ready = poll(&input, 1, kTickMilliseconds);
    if (ready < 0 && errno != EINTR) end = ServeEnd::kShutdown;
    if (writer_.broken()) end = ServeEnd::kShutdown;
    if (end || ready <= 0) continue;
    if ((input.revents & POLLIN) == 0 || reads) end = read_some(&reader, why);
  }
  writer_.wait_until_written(kLastWordsMilliseconds);
  return *end;
}

std::optional<ServeEnd> Server::read_some(FrameReader* reader, std::string* why) {
  char bytes[1 << 16];
  const ssize_t count = read(input_, bytes, sizeof(bytes));
  if (count < 0 && errno == EINTR) return std::nullopt;
  if (count <= 0) {
    if (!reader->within_frame()) return ServeEnd::kShutdown;
    *why = "the input ended within a frame";
    return ServeEnd::kProtocol;
  }
  reader->push({bytes, static_cast<size_t>(count)});
  for (;;) {
    Result<std::optional<Frame>> frame = reader->next();
    std::optional<ServeEnd> end;
    if (!frame.ok()) {
      *why = frame.status().message();
      end = ServeEnd::kProtocol;
    } else if (!frame.value()) {
      return std::nullopt;
    } else {
      end = handle(*frame.value(), why);
    }
    if (end == ServeEnd::kProtocol) send_error(0, "protocol", *why, true);
    if (end) return end;
  }
}

std::optional<ServeEnd> Server::handle(const Frame& frame, std::string* why) {
  const Result<nlohmann::json> payload = parse_payload(frame.payload);
  if (!payload.ok()) {
    *why = payload.status().message();
    return ServeEnd::kProtocol;
  }
  const FrameType type = static_cast<FrameType>(frame.type);
  const JsonObject request(payload.value(), "request");
  if (type == FrameType::kHello) return hello(request, why);
  if (!greeted_) {
    *why = "the first frame is not hello";
    return ServeEnd::kProtocol;
  }
  if (type == FrameType::kShutdown) return ServeEnd::kShutdown;
  int64_t id = 0;
  Status status = type == FrameType::kThermal ? Status::okay() : read_id(request, &id);
  if (status.ok()) status = handle_request(type, request, frame.payload, id);
  if (!status.ok()) send_error(id, code_name(status.code()), status.message(), false);
  return std::nullopt;
}

std::optional<ServeEnd> Server::hello(const JsonObject& request, std::string* why) {
  int64_t version = 0;
  if (!request.read("protocol", int64_t{0}, kMaxRequestId, &version).ok()) {
    *why = "hello names no protocol version";
    return ServeEnd::kProtocol;
  }
  if (version != kProtocolVersion) {
    *why = "version " + std::to_string(version) + " of the protocol was asked for; this engine (" +
           sapwood_version() + ") speaks version " + std::to_string(kProtocolVersion) +
           ": install the library and the engine of one release";
    send_error(0, "version", *why, true);
    return ServeEnd::kVersion;
  }
  greeted_ = true;
  writer_.send(FrameType::kHelloReply, {{"protocol", kProtocolVersion},
                                        {"version", sapwood_version()},
                                        {"kernels", kernels().name},
                                        {"pid", getpid()}});
  return std::nullopt;
}

Status Server::handle_request(FrameType type, const JsonObject& request, const std::string& payload,
                              int64_t id) {
  switch (type) {
    case FrameType::kCancel:
      cancel(id);
      return Status::okay();
    case FrameType::kPing:
      pong(id);
      return Status::okay();
    case FrameType::kThermal: {
      sapwood_readings readings;
      SAPWOOD_TRY(read_thermal(request, &readings));
      const std::lock_guard lock(mutex_);
      sensors_ = readings;
      sensors_are_news_ = true;
      wakes_.notify_all();
      return Status::okay();
    }
    case FrameType::kTrace: {
      TraceRequest trace;
      trace.id = id;
      SAPWOOD_TRY(read_trace(request, &trace));
      const std::lock_guard lock(mutex_);
      traces_.push_back(std::move(trace));
      wakes_.notify_all();
      return Status::okay();
    }
    case FrameType::kLoad:
    case FrameType::kGenerate:
      break;
    default:
      return Status(Code::kUnsupported,
                    "a request of the type " + std::to_string(static_cast<int>(type)) +
                        " is not part of version " + std::to_string(kProtocolVersion));
  }
  Job job;
  job.id = id;
  job.load = type == FrameType::kLoad;
  if (job.load) {
    SAPWOOD_TRY(read_load(request, &job.options));
  } else {
    SAPWOOD_TRY(read_generate(request, payload, &job.request, &job.snapshot_milliseconds));
  }
  {
    const std::lock_guard lock(mutex_);
    if (open_id_ != 0) {
      send_error(
          id, "busy",
          "request " + std::to_string(open_id_) + " is running; wait for its end or cancel it",
          false);
      return Status::okay();
    }
    open_id_ = id;
    open_is_load_ = job.load;
    const int32_t heat = stats_.heat;  // which outlives an answer
    stats_ = {};
    stats_.heat = heat;
    first_token_seconds_ = 0;
    progress_ = Clock::now();
    waiting_ = std::move(job);
  }
  wakes_.notify_all();
  return Status::okay();
}

// The end is sent here and now; the computing thread finds the job closed when its pass is over.
void Server::cancel(int64_t id) {
  const std::lock_guard lock(mutex_);
  if (open_id_ != id) return;
  open_id_ = 0;
  if (waiting_ && waiting_->id == id) waiting_.reset();
  if (answerer_ != nullptr && !open_is_load_) answerer_->cancel();
  writer_.drop(id);
  if (open_is_load_) {
    send_error(id, "cancelled", "loading was cancelled; nothing is loaded", false);
    return;
  }
  nlohmann::json end = stats_json(stats_, facts_, first_token_seconds_, sensors_.celsius);
  end["id"] = id;
  end["stop_reason"] = "cancelled";
  writer_.send(FrameType::kDone, end);
}

// A start that had not begun when it was cancelled forgets it: say it again until it has heard.
void Server::repeat_cancel() {
  const std::lock_guard lock(mutex_);
  if (computing_id_ != 0 && computing_id_ != open_id_ && answerer_ != nullptr) answerer_->cancel();
}

void Server::pong(int64_t id) {
  const std::lock_guard lock(mutex_);
  nlohmann::json reply = {{"id", id}, {"working", nullptr}, {"idle_milliseconds", 0}};
  const int64_t at_work = open_id_ != 0 ? open_id_ : computing_id_;
  if (at_work != 0) {
    reply["working"] = at_work;
    reply["idle_milliseconds"] = static_cast<int64_t>(seconds_since(progress_) * 1000);
  }
  writer_.send(FrameType::kPong, reply);
}

void Server::send_error(int64_t id, std::string_view code, const std::string& message, bool fatal) {
  nlohmann::json error = {{"id", nullptr}, {"code", code}, {"message", message}, {"fatal", fatal}};
  if (id != 0) error["id"] = id;
  writer_.send(FrameType::kError, error);
}

}  // namespace sapwood
