#include "memory/shared_memory_files.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace sapwood {
namespace {

constexpr char kDmaHeapPath[] = "/dev/dma_heap/system";
constexpr char kUdmabufPath[] = "/dev/udmabuf";

// A call that a signal cut short, or that asks to be made again.
template <typename Call>
int retried(Call call) {
  int result;
  do {
    result = call();
  } while (result < 0 && (errno == EINTR || errno == EAGAIN));
  return result;
}

Result<Descriptor> open_device(const char* path) {
  Descriptor device(retried([&] { return ::open(path, O_RDWR | O_CLOEXEC); }));
  if (device.get() >= 0) return device;
  const int error = errno;
  if (error == EMFILE || error == ENFILE || error == ENOMEM) return memory_error(path, error);
  return Status(Code::kUnsupported, std::string(path) + ": " + std::strerror(error) +
                                        "; the kernel lacks it, or this user may not open it");
}

Status refuse(int fd, const std::string& why) {
  return Status(Code::kInvalidArgument,
                "descriptor " + std::to_string(fd) + " cannot be imported: " + why);
}

bool is_dma_buf(int fd) {
  struct statfs info;
  return retried([&] { return ::fstatfs(fd, &info); }) == 0 && info.f_type == DMA_BUF_MAGIC;
}

// A device's driver takes page after page until the system kills somebody for want of memory, so it
// is not asked for more than there is.
Status check_available(const char* what, size_t bytes) {
  std::ifstream file("/proc/meminfo");
  const std::string field = "MemAvailable:";
  for (std::string word; file >> word;) {
    size_t kilobytes = 0;
    if (word != field || !(file >> kilobytes)) continue;
    if (bytes >> 10 < kilobytes) return Status::okay();
    return Status(Code::kExhausted, std::string(what) + ": " + std::to_string(bytes) +
                                        " bytes are wanted and " + std::to_string(kilobytes) +
                                        " KiB are available");
  }
  return Status::okay();  // unknown: the driver decides
}

// The size of a memfd that may be imported.
Result<uint64_t> sealed_size(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return refuse(fd, "it is neither a dma-buf nor a memfd");
  if ((seals & F_SEAL_SHRINK) == 0) {
    return refuse(fd, "it could shrink while it is in use; seal it with F_SEAL_SHRINK first");
  }
  if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) {
    return refuse(fd, "it is sealed against writing");
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) return refuse(fd, std::strerror(errno));
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

Status memory_error(const char* what, int error) {
  const bool exhausted = error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOSPC ||
                         error == EFBIG || error == EOVERFLOW;
  return Status(exhausted ? Code::kExhausted : Code::kUnsupported,
                std::string(what) + ": " + std::strerror(error));
}

Result<Descriptor> make_memfd(size_t bytes) {
  if (bytes > static_cast<size_t>(std::numeric_limits<off_t>::max())) {
    return memory_error("memfd", EFBIG);
  }
  Descriptor file(::memfd_create("sapwood", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return memory_error("memfd", errno);
  if (retried([&] { return ::ftruncate(file.get(), static_cast<off_t>(bytes)); }) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return memory_error("memfd", errno);
  }
  return file;
}

Result<Descriptor> make_udmabuf(size_t bytes) {
  Result<Descriptor> device = open_device(kUdmabufPath);
  if (!device.ok()) return device.status();
  SAPWOOD_TRY(check_available("udmabuf", bytes));
  const Result<Descriptor> pages = make_memfd(bytes);
  if (!pages.ok()) return pages.status();
  udmabuf_create request = {};
  request.memfd = static_cast<__u32>(pages.value().get());
  request.flags = UDMABUF_FLAGS_CLOEXEC;
  request.size = bytes;
  const int fd = retried([&] { return ::ioctl(device.value().get(), UDMABUF_CREATE, &request); });
  if (fd >= 0) return Descriptor(fd);
  if (errno == EINVAL) {
    return Status(
        Code::kExhausted,
        "udmabuf: refused " + std::to_string(bytes) +
            " bytes; /sys/module/udmabuf/parameters/size_limit_mb says how many it allows");
  }
  return memory_error("udmabuf", errno);
}

Result<Descriptor> make_dma_heap(size_t bytes) {
  Result<Descriptor> heap = open_device(kDmaHeapPath);
  if (!heap.ok()) return heap.status();
  SAPWOOD_TRY(check_available("dma_heap", bytes));
  dma_heap_allocation_data request = {};
  request.len = bytes;
  request.fd_flags = O_RDWR | O_CLOEXEC;
  if (retried([&] { return ::ioctl(heap.value().get(), DMA_HEAP_IOCTL_ALLOC, &request); }) != 0) {
    return memory_error("dma_heap", errno);
  }
  return Descriptor(static_cast<int>(request.fd));
}

Result<MemoryKind> check_shared_memory(int fd, size_t bytes) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return refuse(fd, std::strerror(errno));
  const bool dma_buf = is_dma_buf(fd);
  uint64_t size = 0;
  if (dma_buf) {
    const off_t end = ::lseek(fd, 0, SEEK_END);
    if (end < 0) return refuse(fd, std::strerror(errno));
    size = static_cast<uint64_t>(end);
  } else {
    const Result<uint64_t> sealed = sealed_size(fd);
    if (!sealed.ok()) return sealed.status();
    size = sealed.value();
  }
  if ((flags & O_ACCMODE) != O_RDWR) return refuse(fd, "it is not open for reading and writing");
  if (size < bytes) {
    return refuse(fd, "it has " + std::to_string(size) + " bytes, and " + std::to_string(bytes) +
                          " are needed");
  }
  return dma_buf ? MemoryKind::kDmaBuf : MemoryKind::kMemfd;
}

Status sync_dma_buf(int fd, CpuAccess access, bool end) {
  dma_buf_sync request = {};
  if (access != CpuAccess::kWrite) request.flags |= DMA_BUF_SYNC_READ;
  if (access != CpuAccess::kRead) request.flags |= DMA_BUF_SYNC_WRITE;
  request.flags |= end ? DMA_BUF_SYNC_END : DMA_BUF_SYNC_START;
  if (retried([&] { return ::ioctl(fd, DMA_BUF_IOCTL_SYNC, &request); }) != 0) {
    return Status(Code::kInternal, std::string("DMA_BUF_IOCTL_SYNC: ") + std::strerror(errno));
  }
  return Status::okay();
}

}  // namespace sapwood
