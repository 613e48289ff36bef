#include "base/write_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sapwood {

Status write_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".partial";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) {
    return Status(Code::kInvalidArgument, path + ": cannot be written: " + std::strerror(errno));
  }
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    return Status(Code::kInvalidArgument, path + ": cannot be written: " + reason);
  }
  return Status::okay();
}

}  // namespace sapwood
