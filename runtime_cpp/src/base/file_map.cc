#include "base/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.h"

namespace sapwood {
namespace {

Status system_error(const std::string& path, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  return Status(absent ? Code::kNotFound : Code::kInvalidArgument,
                path + ": " + std::strerror(error));
}

// O_NONBLOCK: opening a named pipe must not wait for a writer. Regular files ignore it.
int open_to_read(const std::string& path) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Result<uint64_t> regular_size(int fd, const std::string& path) {
  if (fd < 0) return system_error(path, errno);
  struct stat info;
  if (::fstat(fd, &info) != 0) return system_error(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Status(Code::kInvalidArgument, path + ": is not a regular file");
  }
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

FileMap::~FileMap() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

FileMap::FileMap(FileMap&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Result<FileMap> FileMap::open(const std::string& path, uint64_t expected_bytes) {
  const Descriptor file(open_to_read(path));
  const Result<uint64_t> size = regular_size(file.get(), path);
  if (!size.ok()) return size.status();
  if (size.value() != expected_bytes) {
    return Status(Code::kCorrupt, path + ": has " + std::to_string(size.value()) +
                                      " bytes, expected " + std::to_string(expected_bytes));
  }
  FileMap map;
  if (expected_bytes == 0) return map;
  if (expected_bytes > SIZE_MAX) {
    return Status(Code::kUnsupported, path + ": is too large for this machine's address space");
  }
  void* data = ::mmap(nullptr, expected_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return Status(Code::kExhausted, path + ": cannot be mapped: " + std::strerror(errno));
  }
  map.data_ = static_cast<const uint8_t*>(data);
  map.size_ = expected_bytes;
  return map;
}

Result<uint64_t> file_size(const std::string& path) {
  const Descriptor file(open_to_read(path));
  return regular_size(file.get(), path);
}

Result<std::string> read_file(const std::string& path, uint64_t limit) {
  const Descriptor file(open_to_read(path));
  const Result<uint64_t> size = regular_size(file.get(), path);
  if (!size.ok()) return size.status();
  if (size.value() > limit) {
    return Status(Code::kCorrupt, path + ": has " + std::to_string(size.value()) +
                                      " bytes, at most " + std::to_string(limit) + " are allowed");
  }
  std::string text(size.value(), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, errno);
    if (got == 0) break;  // shrank while it was read
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace sapwood
