#include "engine_process/frame.h"

#include <utility>

#include "base/json.h"

namespace sapwood {
namespace {

constexpr int kDeepestPayload = 64;

// Looked at before anything is parsed: what reads JSON calls itself for each level.
bool too_deep(std::string_view payload) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < payload.size(); ++i) {
    const char c = payload[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestPayload) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view waiting = std::string_view(bytes_).substr(begin_);
  if (waiting.size() < kFrameHeaderBytes) return std::optional<Frame>();
  size_t length = 0;
  for (size_t i = 4; i-- > 0;) length = length << 8 | static_cast<uint8_t>(waiting[i]);
  if (length == 0 || length > kMaxRequestBytes) {
    return Status(Code::kCorrupt, "a frame of " + std::to_string(length) +
                                      " bytes; a frame has 1 to " +
                                      std::to_string(kMaxRequestBytes));
  }
  if (waiting.size() < kFrameHeaderBytes + length) return std::optional<Frame>();
  Frame frame{static_cast<uint8_t>(waiting[4]),
              std::string(waiting.substr(kFrameHeaderBytes, length))};
  begin_ += kFrameHeaderBytes + length;
  if (begin_ == bytes_.size() || begin_ > kMaxRequestBytes) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

Result<nlohmann::json> parse_payload(std::string_view payload) {
  if (too_deep(payload)) {
    return Status(Code::kCorrupt,
                  "a payload is nested deeper than " + std::to_string(kDeepestPayload) + " levels");
  }
  Result<nlohmann::json> parsed = parse_json(payload, "a payload");
  if (parsed.ok() && !parsed->is_object()) {
    return Status(Code::kCorrupt, "a payload is not an object");
  }
  return parsed;
}

std::string make_frame(FrameType type, const nlohmann::json& payload) {
  const std::string text = payload.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string frame;
  frame.reserve(kFrameHeaderBytes + text.size());
  for (int i = 0; i < 4; ++i) frame += static_cast<char>(text.size() >> (8 * i) & 0xff);
  frame += static_cast<char>(type);
  return frame += text;
}

}  // namespace sapwood
