// A file mapped read-only.
//
// The file must not shrink while it is mapped: reading past its new end raises SIGBUS, on every
// system. Bundles are written once, under a temporary name, then renamed, so ours do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace sapwood {

class FileMap {
 public:
  FileMap() = default;
  ~FileMap();
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  // Maps the whole file, which must be a regular one of exactly `expected_bytes`; kCorrupt if it is
  // not. An empty file maps to an empty span. The address is a multiple of the page size.
  static Result<FileMap> open(const std::string& path, uint64_t expected_bytes);

  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// The size of a regular file; kNotFound if it is absent, kInvalidArgument if it is no regular file.
Result<uint64_t> file_size(const std::string& path);

// Reads a whole file of at most `limit` bytes; a larger one is kCorrupt.
Result<std::string> read_file(const std::string& path, uint64_t limit);

}  // namespace sapwood
