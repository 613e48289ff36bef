// The engine's frame reader: whatever the bytes, and however they are cut, it gives the same frames
// and stops at the same place, and what it gives is within the limits.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine_process/frame.h"
#include "fuzz_target.h"
#include "promise.h"

namespace {

using namespace sapwood;

struct Reading {
  std::vector<Frame> frames;
  bool failed = false;
};

// Reads all of it, `portion` bytes at a time.
Reading read_all(std::string_view bytes, size_t portion) {
  FrameReader reader;
  Reading reading;
  while (!bytes.empty() && !reading.failed) {
    reader.push(bytes.substr(0, portion));
    bytes.remove_prefix(std::min(portion, bytes.size()));
    for (;;) {
      const Result<std::optional<Frame>> next = reader.next();
      reading.failed = !next.ok();
      if (!next.ok() || !next.value()) break;
      reading.frames.push_back(*next.value());
    }
  }
  return reading;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const std::string hello = make_frame(FrameType::kHello, {{"protocol", 1}});
  const std::string generate = make_frame(
      FrameType::kGenerate, {{"id", 2},
                             {"messages", {{{"role", "user"}, {"content", "A \"tree\"\n"}}}},
                             {"stop", {"x"}}});
  const std::string record = make_frame(FrameType::kTrace, {{"id", 3}, {"events", 65536}});
  const std::string save = make_frame(FrameType::kTrace, {{"id", 4}, {"file", "a.perfetto-trace"}});
  return {hello,
          hello + generate,
          hello + record + generate + save,
          hello + generate.substr(0, 9),
          "GET / HTTP/1.1\r\n\r\n",
          std::string("\x02\0\0\0\x05{}", 7)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Reading whole = read_all(bytes, std::max<size_t>(size, 1));
  for (const size_t portion : {size_t{1}, size_t{3}, size_t{7}}) {
    const Reading cut = read_all(bytes, portion);
    require(cut.failed == whole.failed && cut.frames.size() == whole.frames.size(),
            "the cuts of the input change nothing");
    for (size_t i = 0; i < cut.frames.size(); ++i) {
      require(cut.frames[i].payload == whole.frames[i].payload, "a frame is the same frame");
    }
  }
  for (const Frame& frame : whole.frames) {
    require(!frame.payload.empty() && frame.payload.size() <= kMaxRequestBytes,
            "a payload keeps to its limits");
    const Result<nlohmann::json> payload = parse_payload(frame.payload);
    if (!payload.ok()) continue;
    FrameReader again;
    again.push(make_frame(static_cast<FrameType>(frame.type), payload.value()));
    const Result<std::optional<Frame>> next = again.next();
    require(next.ok() && next.value() && next.value()->type == frame.type,
            "what is written can be read");
  }
  return 0;
}
