// A message in the wire format of Protocol Buffers, field by field: what writing traces and
// graphs needs of it.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace sapwood {

class ProtobufMessage {
 public:
  // int32, int64, uint32, uint64 or an enumeration; not the zigzag of sint.
  ProtobufMessage& number(int field, int64_t value) {
    tag(field, kVarint);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtobufMessage& fixed64(int field, uint64_t value) {
    tag(field, kFixed64);
    little_endian(value, 8);
    return *this;
  }
  ProtobufMessage& real(int field, double value) {
    return fixed64(field, std::bit_cast<uint64_t>(value));
  }
  ProtobufMessage& real32(int field, float value) {
    tag(field, kFixed32);
    little_endian(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  ProtobufMessage& text(int field, std::string_view value) {
    tag(field, kLengthDelimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufMessage& message(int field, const ProtobufMessage& inner) {
    return text(field, inner.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

  void tag(int field, WireType type) { varint(static_cast<uint64_t>(field) << 3 | type); }
  void little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace sapwood
