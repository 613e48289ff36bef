// Memory of the kind hardware_buffer, over a stand-in for the phone's (hardware_buffer_shim.h).
#include "memory/hardware_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>
#include <vector>

#include "hardware_buffer_shim.h"
#include "memory/memory_block.h"
#include "memory/unified_pool.h"

namespace sapwood {
namespace {

class HardwareBuffer : public ::testing::Test {
 protected:
  void SetUp() override { shim = {}; }
  void TearDown() override {
    EXPECT_EQ(shim.live, 0);
    EXPECT_EQ(shim.locked, 0);
    EXPECT_EQ(shim.misuses, 0);
  }
  HardwareBufferShim& shim = hardware_buffer_shim();
};

TEST_F(HardwareBuffer, IsAKindThatCanBeMade) {
  EXPECT_TRUE(try_memory_kind(MemoryKind::kHardwareBuffer).ok());
}

TEST_F(HardwareBuffer, IsZeroWritableAndSeenByTheOtherUnitsAfterEveryAccess) {
  shim.dirt = 0xaa;
  const MemoryBlock block = MemoryBlock::create(MemoryKind::kHardwareBuffer, 10'000).value();
  EXPECT_EQ(block.kind(), MemoryKind::kHardwareBuffer);
  EXPECT_EQ(block.bytes() % memory_page_bytes(), 0u);
  EXPECT_TRUE(std::all_of(block.data(), block.data() + block.bytes(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(shim.locks, 1);
  ASSERT_TRUE(block.begin_cpu_access(CpuAccess::kWrite).ok());
  block.data()[block.bytes() - 1] = std::byte{7};
  ASSERT_TRUE(block.end_cpu_access(CpuAccess::kWrite).ok());
  EXPECT_EQ(shim.locks, 3);
  EXPECT_EQ(shim.locked, 1);
  EXPECT_EQ(block.data()[block.bytes() - 1], std::byte{7});
  EXPECT_EQ(block.export_fd().status().code(), Code::kUnsupported);
}

TEST_F(HardwareBuffer, MovesWithItsBlockAndGoesOnce) {
  MemoryBlock first = MemoryBlock::create(MemoryKind::kHardwareBuffer, 1).value();
  MemoryBlock second = MemoryBlock::create(MemoryKind::kHardwareBuffer, 1).value();
  EXPECT_EQ(shim.live, 2);
  second = std::move(first);
  first = MemoryBlock();
  EXPECT_EQ(shim.live, 1);
  second.data()[0] = std::byte{1};
}

TEST_F(HardwareBuffer, HandsOutAPoolWhosePiecesKeepItAlive) {
  TensorHandle kept;
  {
    UnifiedPool pool =
        UnifiedPool::create(MemoryKind::kHardwareBuffer, 8 * memory_page_bytes(), {}).value();
    kept = pool.allocate(memory_page_bytes()).value();
    EXPECT_EQ(kept.fd(), -1);
    Result<CpuAccessScope> access = kept.cpu_access(CpuAccess::kReadWrite);
    ASSERT_TRUE(access.ok());
    kept.data()[0] = std::byte{3};
    EXPECT_TRUE(access->end().ok());
  }
  EXPECT_EQ(shim.live, 1);
  EXPECT_EQ(kept.data()[0], std::byte{3});
}

TEST_F(HardwareBuffer, WhatThePhoneRefusesIsOneLineAndLeavesNothingBehind) {
  const auto refused = [] { return MemoryBlock::create(MemoryKind::kHardwareBuffer, 1).status(); };
  shim.allocate_error = -ENOMEM;
  EXPECT_EQ(refused().code(), Code::kExhausted);
  shim.allocate_error = -EINVAL;
  EXPECT_EQ(refused().code(), Code::kUnsupported);
  EXPECT_NE(refused().message().find("hardware_buffer"), std::string::npos);
  shim.allocate_error = 0;
  shim.lock_error = -EINVAL;
  EXPECT_EQ(refused().code(), Code::kUnsupported);
  shim.lock_error = 0;
  // More than a buffer's width can say.
  const size_t most = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(MemoryBlock::create(MemoryKind::kHardwareBuffer, most + 1).status().code(),
            Code::kExhausted);
}

TEST_F(HardwareBuffer, APhoneThatMapsItAnewEachTimeIsFoundOut) {
  const MemoryBlock block = MemoryBlock::create(MemoryKind::kHardwareBuffer, 1).value();
  shim.moves = true;
  const Status moved = block.begin_cpu_access(CpuAccess::kRead);
  EXPECT_EQ(moved.code(), Code::kInternal);
  EXPECT_NE(moved.message().find("dma_heap"), std::string::npos);
}

}  // namespace
}  // namespace sapwood
