#include "memory/memory_block.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "memory/shared_memory_files.h"
#include "memory_kinds.h"
#include "temporary_folder.h"

namespace sapwood {
namespace {

MemoryBlock made(MemoryKind kind, size_t bytes) {
  Result<MemoryBlock> block = MemoryBlock::create(kind, bytes);
  EXPECT_TRUE(block.ok()) << block.status().message();
  return block.ok() ? std::move(block).value() : MemoryBlock();
}

class BlockOf : public ::testing::TestWithParam<MemoryKind> {
 protected:
  void SetUp() override { SAPWOOD_SKIP_WITHOUT(GetParam()); }
  bool has_descriptor() const { return GetParam() != MemoryKind::kHost; }
};
INSTANTIATE_TEST_SUITE_P(Kinds, BlockOf, ::testing::ValuesIn(all_creatable_kinds()),
                         kind_test_name);

TEST_P(BlockOf, IsZeroWritableAlignedAndWholePages) {
  const size_t page = memory_page_bytes();
  for (const size_t bytes : {size_t{1}, page - 1, page, page + 1, 5 * page, size_t{3} << 20}) {
    const MemoryBlock block = made(GetParam(), bytes);
    ASSERT_NE(block.data(), nullptr);
    EXPECT_EQ(block.kind(), GetParam());
    EXPECT_EQ(block.bytes(), (bytes + page - 1) / page * page);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % page, 0u);
    EXPECT_TRUE(std::all_of(block.data(), block.data() + block.bytes(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
    ASSERT_TRUE(block.begin_cpu_access(CpuAccess::kReadWrite).ok());
    std::memset(block.data(), 0x5a, block.bytes());
    EXPECT_EQ(block.data()[block.bytes() - 1], std::byte{0x5a});
    EXPECT_TRUE(block.end_cpu_access(CpuAccess::kReadWrite).ok());
  }
}

TEST_P(BlockOf, FaultsBeforeItsFirstByteAndBehindItsLast) {
  const MemoryBlock block = made(GetParam(), 3 * memory_page_bytes());
  volatile std::byte* data = block.data();
  EXPECT_DEATH(data[-1] = std::byte{1}, "");
  EXPECT_DEATH(data[block.bytes()] = std::byte{1}, "");
}

TEST_P(BlockOf, LeavesNothingBehind) {
  const int before = open_descriptors();
  {
    MemoryBlock first = made(GetParam(), 1);
    MemoryBlock second = made(GetParam(), 1);
    EXPECT_EQ(open_descriptors(), before + (has_descriptor() ? 2 : 0));
    const MemoryBlock moved = std::move(first);
    second = MemoryBlock();
    EXPECT_NE(moved.data(), nullptr);
    EXPECT_EQ(open_descriptors(), before + (has_descriptor() ? 1 : 0));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(BlockOf, IsSharedByExportAndImport) {
  const size_t bytes = 2 * memory_page_bytes();
  MemoryBlock block = made(GetParam(), bytes);
  const Result<int> exported = block.export_fd();
  if (!has_descriptor()) {
    EXPECT_EQ(exported.status().code(), Code::kUnsupported);
    EXPECT_NE(exported.status().message().find("no descriptor to export"), std::string::npos);
    EXPECT_EQ(block.fd(), -1);
    return;
  }
  ASSERT_TRUE(exported.ok()) << exported.status().message();
  const Descriptor given(exported.value());
  EXPECT_NE(given.get(), block.fd());
  EXPECT_EQ(fcntl(given.get(), F_GETFD), FD_CLOEXEC);
  const Result<MemoryBlock> other = MemoryBlock::import(given.get(), bytes);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(other.value().kind(), block.is_dma_buf() ? MemoryKind::kDmaBuf : MemoryKind::kMemfd);
  EXPECT_EQ(other.value().is_dma_buf(), block.is_dma_buf());
  EXPECT_NE(other.value().data(), block.data());
  block.data()[bytes - 1] = std::byte{7};
  EXPECT_EQ(other.value().data()[bytes - 1], std::byte{7});
  block = MemoryBlock();  // the importer's memory does not depend on the exporter
  other.value().data()[0] = std::byte{9};
  EXPECT_EQ(other.value().data()[bytes - 1], std::byte{7});
}

TEST_P(BlockOf, IsSharedWithAnotherProcess) {
  if (!has_descriptor()) GTEST_SKIP() << "host memory belongs to one process";
  const MemoryBlock block = made(GetParam(), memory_page_bytes());
  const Descriptor given(block.export_fd().value());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result<MemoryBlock> theirs = MemoryBlock::import(given.get(), memory_page_bytes());
    if (!theirs.ok() || !theirs.value().begin_cpu_access(CpuAccess::kWrite).ok()) _exit(1);
    std::memcpy(theirs.value().data(), "from the child", 15);
    _exit(theirs.value().end_cpu_access(CpuAccess::kWrite).ok() ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(block.begin_cpu_access(CpuAccess::kRead).ok());
  EXPECT_STREQ(reinterpret_cast<const char*>(block.data()), "from the child");
  EXPECT_TRUE(block.end_cpu_access(CpuAccess::kRead).ok());
}

TEST_P(BlockOf, IsRefusedAsTooSmallForMoreThanItHas) {
  if (!has_descriptor()) GTEST_SKIP() << "host memory has no descriptor";
  const MemoryBlock block = made(GetParam(), 2 * memory_page_bytes());
  EXPECT_TRUE(MemoryBlock::import(block.fd(), 2 * memory_page_bytes()).ok());
  EXPECT_TRUE(MemoryBlock::import(block.fd(), 1).ok());
  const Status more = MemoryBlock::import(block.fd(), 2 * memory_page_bytes() + 1).status();
  EXPECT_EQ(more.code(), Code::kInvalidArgument);
  EXPECT_NE(more.message().find(std::to_string(2 * memory_page_bytes()) + " bytes"),
            std::string::npos)
      << more.message();
}

// Every step that needs a descriptor finds none, in turn.
TEST_P(BlockOf, RunsOutOfDescriptorsAtEachStepWithAStatusAndNoLeak) {
  const int before = open_descriptors();
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  const int lowest_free = dup(0);
  ASSERT_GE(lowest_free, 0);
  close(lowest_free);
  int refused = 0;
  for (int spare = 0;; ++spare) {
    ASSERT_LT(spare, 8);
    rlimit few = old_limit;
    few.rlim_cur = static_cast<rlim_t>(lowest_free + spare);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const Status status = MemoryBlock::create(GetParam(), 1).status();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
    EXPECT_EQ(open_descriptors(), before);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), Code::kExhausted) << status.message();
    ++refused;
  }
  const int needed = GetParam() == MemoryKind::kUdmabuf   ? 3
                     : GetParam() == MemoryKind::kDmaHeap ? 2
                     : has_descriptor()                   ? 1
                                                          : 0;
  EXPECT_EQ(refused, needed);
}

TEST_P(BlockOf, RefusesSizesThatNoMemoryHas) {
  const int before = open_descriptors();
  EXPECT_EQ(MemoryBlock::create(GetParam(), 0).status().code(), Code::kInvalidArgument);
  for (const size_t bytes : {size_t{1} << 50, size_t{1} << 62, std::numeric_limits<size_t>::max(),
                             std::numeric_limits<size_t>::max() - 2 * memory_page_bytes()}) {
    EXPECT_EQ(MemoryBlock::create(GetParam(), bytes).status().code(), Code::kExhausted) << bytes;
  }
  EXPECT_EQ(open_descriptors(), before);
}

// ---- what is no memory to import ----------------------------------------------------------------

void expect_refused(int fd, const char* part, size_t bytes = 1) {
  const int before = open_descriptors();
  const Status status = MemoryBlock::import(fd, bytes).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_EQ(open_descriptors(), before);
}

Descriptor memfd_with(int seals, off_t bytes = 4 << 20) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), bytes), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

TEST(MemoryImport, RefusesWhatIsNoDescriptor) {
  expect_refused(-1, "Bad file descriptor");
  const int closed = dup(0);
  close(closed);
  expect_refused(closed, "Bad file descriptor");
}

TEST(MemoryImport, RefusesFilesPipesSocketsFoldersAndDevices) {
  const std::string folder = temporary_folder();
  write_text(folder + "/file", std::string(8192, 'x'));
  const char kNeither[] = "neither a dma-buf nor a memfd";
  for (const std::string& path : {folder + "/file", std::string("/dev/zero")}) {
    expect_refused(Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC)).get(), "");
  }
  expect_refused(Descriptor(open("/dev/zero", O_RDWR | O_CLOEXEC)).get(), kNeither);
  expect_refused(Descriptor(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)).get(), kNeither);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Descriptor reading(ends[0]), writing(ends[1]);
  expect_refused(reading.get(), kNeither);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor left(ends[0]), right(ends[1]);
  expect_refused(left.get(), kNeither);
}

TEST(MemoryImport, RefusesAMemfdThatCouldShrink) {
  expect_refused(memfd_with(0).get(), "F_SEAL_SHRINK");
  expect_refused(memfd_with(F_SEAL_GROW | F_SEAL_SEAL).get(), "F_SEAL_SHRINK");
  EXPECT_TRUE(MemoryBlock::import(memfd_with(F_SEAL_SHRINK).get(), 1).ok());
}

TEST(MemoryImport, RefusesAMemfdThatCannotBeWritten) {
  expect_refused(memfd_with(F_SEAL_SHRINK | F_SEAL_WRITE).get(), "sealed against writing");
#ifdef F_SEAL_FUTURE_WRITE
  expect_refused(memfd_with(F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE).get(), "sealed against writing");
#endif
  const Descriptor file = memfd_with(F_SEAL_SHRINK);
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const Descriptor read_only(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_GE(read_only.get(), 0);
  expect_refused(read_only.get(), "not open for reading and writing");
}

TEST(MemoryImport, RefusesAMemfdThatIsTooSmallAndSizesThatAreNone) {
  const Descriptor file = memfd_with(F_SEAL_SHRINK, 5000);
  expect_refused(file.get(), "5000 bytes", 5000);  // its last page is not whole
  EXPECT_TRUE(MemoryBlock::import(file.get(), memory_page_bytes()).ok());
  expect_refused(file.get(), "at least one byte", 0);
  EXPECT_EQ(MemoryBlock::import(file.get(), std::numeric_limits<size_t>::max()).status().code(),
            Code::kExhausted);
}

TEST(MemoryImport, SaysWhenNoDescriptorIsLeft) {
  const MemoryBlock block = made(MemoryKind::kMemfd, 1);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  const int lowest_free = dup(0);
  close(lowest_free);
  rlimit none = old_limit;
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status imported = MemoryBlock::import(block.fd(), 1).status();
  const Status exported = block.export_fd().status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
  EXPECT_EQ(imported.code(), Code::kExhausted) << imported.message();
  EXPECT_EQ(exported.code(), Code::kExhausted) << exported.message();
}

// ---- kinds --------------------------------------------------------------------------------------

TEST(MemoryKind, HasANameThatReadsBack) {
  for (const MemoryKind kind : all_creatable_kinds()) {
    EXPECT_EQ(parse_memory_kind(memory_kind_name(kind)), kind);
  }
  EXPECT_EQ(parse_memory_kind("dma_buf"), MemoryKind::kDmaBuf);
  EXPECT_EQ(parse_memory_kind("ram"), std::nullopt);
}

TEST(MemoryKind, TheBestOneIsTheFirstThatThisMachineHas) {
  for (const MemoryKind kind : creatable_memory_kinds()) {
    if (try_memory_kind(kind).ok()) {
      EXPECT_EQ(best_memory_kind(), kind);
      return;
    }
  }
  FAIL() << "not even host memory";
}

TEST(MemoryKind, WhatCannotBeMadeIsRefusedWithAReason) {
  EXPECT_EQ(MemoryBlock::create(MemoryKind::kDmaBuf, 1).status().code(), Code::kInvalidArgument);
#ifndef __ANDROID__
  EXPECT_EQ(MemoryBlock::create(MemoryKind::kHardwareBuffer, 1).status().code(),
            Code::kUnsupported);
#endif
  for (const auto& [kind, device] : {std::pair(MemoryKind::kUdmabuf, "/dev/udmabuf"),
                                     std::pair(MemoryKind::kDmaHeap, "/dev/dma_heap/system")}) {
    if (access(device, F_OK) == 0) continue;
    const Status status = MemoryBlock::create(kind, 1).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_NE(status.message().find(device), std::string::npos) << status.message();
  }
}

TEST(DmaBuf, SyncIsRefusedByOtherMemory) {
  const MemoryBlock block = made(MemoryKind::kMemfd, 1);
  const Status status = sync_dma_buf(block.fd(), CpuAccess::kRead, false);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("DMA_BUF_IOCTL_SYNC"), std::string::npos);
}

TEST(DmaBuf, UdmabufRefusesMoreThanItsLimitAndSaysWhereThatStands) {
  SAPWOOD_SKIP_WITHOUT(MemoryKind::kUdmabuf);
  size_t limit_mb = 0;
  std::ifstream("/sys/module/udmabuf/parameters/size_limit_mb") >> limit_mb;
  ASSERT_GT(limit_mb, 0u);
  const Status status = MemoryBlock::create(MemoryKind::kUdmabuf, (limit_mb << 20) + 1).status();
  EXPECT_EQ(status.code(), Code::kExhausted) << status.message();
  EXPECT_NE(status.message().find("size_limit_mb"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace sapwood
