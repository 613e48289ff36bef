#include "memory_kinds.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace sapwood {

std::string why_skip(MemoryKind kind) {
  const char* expected = std::getenv("SAPWOOD_EXPECTED_MEMORY");
  const std::string list = ',' + std::string(expected != nullptr ? expected : "") + ',';
  if (list.find(',' + std::string(memory_kind_name(kind)) + ',') != std::string::npos) return "";
  return try_memory_kind(kind).message();
}

int open_descriptors() {
  // One of them is the listing's own.
  const std::filesystem::directory_iterator listing("/proc/self/fd");
  return static_cast<int>(std::distance(begin(listing), end(listing))) - 1;
}

}  // namespace sapwood
