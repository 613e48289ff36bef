// Frames of the engine's protocol (docs/engine-protocol.md): four bytes of length, one of type, a
// payload that is one JSON object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sapwood {

inline constexpr int kProtocolVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 5;
inline constexpr size_t kMaxRequestBytes = size_t{16} << 20;
inline constexpr size_t kMaxReplyBytes = size_t{1} << 20;

enum class FrameType : uint8_t {
  kHello = 1,
  kLoad = 2,
  kGenerate = 3,
  kCancel = 4,
  kPing = 5,
  kThermal = 6,
  kShutdown = 7,
  kTrace = 8,
  kHelloReply = 129,
  kLoaded = 130,
  kText = 131,
  kTree = 132,
  kStats = 133,
  kDone = 134,
  kPong = 135,
  kError = 136,
  kReading = 137,
  kTraced = 138
};

struct Frame {
  uint8_t type = 0;
  std::string payload;
};

// Puts frames together from bytes that arrive in any portions.
class FrameReader {
 public:
  void push(std::string_view bytes) { bytes_ += bytes; }

  // The next whole frame; none while one is not whole yet. kCorrupt, and for good, once a length is
  // above the limit or zero: what follows has no borders any more.
  Result<std::optional<Frame>> next();

  // Bytes of a frame that is not whole.
  bool within_frame() const { return begin_ < bytes_.size(); }

 private:
  std::string bytes_;
  size_t begin_ = 0;
};

// A payload as an object. kCorrupt for what is not one JSON object, or nested deeper than a request
// ever is.
Result<nlohmann::json> parse_payload(std::string_view payload);

// A whole frame. Text that is not UTF-8 becomes U+FFFD.
std::string make_frame(FrameType type, const nlohmann::json& payload);

}  // namespace sapwood
