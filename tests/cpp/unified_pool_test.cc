#include "memory/unified_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "measure/allocation_counter.h"
#include "memory/kv_store.h"
#include "memory/pooled_floats.h"
#include "memory_kinds.h"

namespace sapwood {
namespace {

const size_t kPage = memory_page_bytes();
constexpr PoolOptions kPlain = {.guard_pages = false};
constexpr PoolOptions kGuarded = {.guard_pages = true};

UnifiedPool pool_of(size_t pages, PoolOptions options = kPlain,
                    MemoryKind kind = MemoryKind::kHost) {
  Result<UnifiedPool> pool = UnifiedPool::create(kind, pages * memory_page_bytes(), options);
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

TensorHandle take(UnifiedPool& pool, size_t bytes) {
  Result<TensorHandle> handle = pool.allocate(bytes);
  EXPECT_TRUE(handle.ok()) << handle.status().message();
  return handle.ok() ? std::move(handle).value() : TensorHandle();
}

class PoolOf : public ::testing::TestWithParam<MemoryKind> {
 protected:
  void SetUp() override { SAPWOOD_SKIP_WITHOUT(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, PoolOf, ::testing::ValuesIn(all_creatable_kinds()), kind_test_name);

// Against a plain model, with and without guard pages: pieces are aligned, apart and keep their
// bytes, and everything comes back.
TEST_P(PoolOf, RandomUseGivesPiecesOfTheirOwn) {
  for (const PoolOptions options : {kPlain, kGuarded}) {
    UnifiedPool pool = pool_of(40, options, GetParam());
    std::mt19937 random(5);
    std::map<size_t, std::pair<TensorHandle, unsigned char>> held;  // by offset
    for (int turn = 0; turn < 400; ++turn) {
      if (random() % 2 == 0) {
        const size_t bytes = 1 + random() % (5 * kPage);
        Result<TensorHandle> taken = pool.allocate(bytes);
        if (!taken.ok()) {
          EXPECT_EQ(taken.status().code(), Code::kExhausted);
          continue;
        }
        const TensorHandle handle = std::move(taken).value();
        EXPECT_EQ(handle.bytes(), bytes);
        EXPECT_EQ(handle.kind(), GetParam());
        EXPECT_EQ(handle.fd(), pool.block().fd());
        EXPECT_EQ(handle.offset() % kPage, 0u);
        EXPECT_EQ(pool.block().data() + handle.offset(), handle.data());
        const auto mark = static_cast<unsigned char>(random());
        const Result<CpuAccessScope> access = handle.cpu_access(CpuAccess::kWrite);
        ASSERT_TRUE(access.ok()) << access.status().message();
        std::memset(handle.data(), mark, bytes);
        ASSERT_TRUE(held.emplace(handle.offset(), std::pair(handle, mark)).second);
      } else if (!held.empty()) {
        const auto chosen = std::next(held.begin(), static_cast<long>(random() % held.size()));
        const auto& [handle, mark] = chosen->second;
        for (size_t i = 0; i < handle.bytes(); ++i) {
          ASSERT_EQ(handle.data()[i], static_cast<std::byte>(mark));
        }
        held.erase(chosen);
      }
      size_t end = 0;
      size_t pages = 0;
      for (const auto& [offset, piece] : held) {
        EXPECT_GE(offset, end);
        end = offset + piece.first.bytes();
        pages += (piece.first.bytes() - 1) / kPage + 1 + (options.guard_pages ? 1 : 0);
      }
      EXPECT_EQ(pool.available_bytes(), pool.bytes() - pages * kPage);
    }
    held.clear();
    EXPECT_EQ(pool.available_bytes(), pool.bytes());
    EXPECT_GT(pool.peak_bytes(), 0u);
  }
}

TEST_P(PoolOf, IsImportedWithItsPiecesAtTheirOffsets) {
  UnifiedPool pool = pool_of(8, kGuarded, GetParam());
  const Result<int> exported = pool.export_fd();
  if (GetParam() == MemoryKind::kHost) {
    EXPECT_EQ(exported.status().code(), Code::kUnsupported);
    return;
  }
  const Descriptor given(exported.value());
  const TensorHandle first = take(pool, kPage);
  const TensorHandle second = take(pool, 2 * kPage);
  std::memset(second.data(), 3, second.bytes());
  const Result<UnifiedPool> other = UnifiedPool::import(given.get(), pool.bytes(), kPlain);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(
      std::memcmp(other.value().block().data() + second.offset(), second.data(), second.bytes()),
      0);
  EXPECT_FALSE(UnifiedPool::import(given.get(), pool.bytes() + 1).ok());
}

TEST(UnifiedPool, HandlesCountAndTheLastOneGivesTheBytesBack) {
  UnifiedPool pool = pool_of(4);
  TensorHandle first = take(pool, 3 * kPage);
  EXPECT_EQ(first.references(), 1);
  {
    TensorHandle second = first;
    const TensorHandle third = second;
    EXPECT_EQ(first.references(), 3);
    EXPECT_EQ(third.data(), first.data());
    TensorHandle moved = std::move(second);
    EXPECT_EQ(first.references(), 3);
    moved = moved.data() != nullptr ? TensorHandle(moved) : TensorHandle();
    EXPECT_EQ(first.references(), 3);
  }
  EXPECT_EQ(first.references(), 1);
  EXPECT_EQ(pool.available_bytes(), kPage);
  first.release();
  first.release();  // an empty handle has nothing to give back
  EXPECT_FALSE(first);
  EXPECT_EQ(first.references(), 0);
  EXPECT_EQ(first.fd(), -1);
  EXPECT_EQ(first.offset(), 0u);
  EXPECT_EQ(pool.available_bytes(), 4 * kPage);
}

TEST(UnifiedPool, HandlesOutliveThePool) {
  const int before = open_descriptors();
  TensorHandle kept;
  {
    UnifiedPool pool = pool_of(4, kGuarded, MemoryKind::kMemfd);
    kept = take(pool, kPage);
    UnifiedPool moved = std::move(pool);
    EXPECT_EQ(moved.available_bytes(), 2 * kPage);
  }
  std::memset(kept.data(), 1, kept.bytes());
  EXPECT_EQ(open_descriptors(), before + 1);
  kept.release();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(UnifiedPool, SaysWhenItHasNoRunLeft) {
  UnifiedPool pool = pool_of(4);
  TensorHandle a = take(pool, 1), b = take(pool, 1), c = take(pool, 1), d = take(pool, 1);
  b.release();
  d.release();
  const Status status = pool.allocate(2 * kPage).status();  // two pages, not side by side
  EXPECT_EQ(status.code(), Code::kExhausted);
  EXPECT_NE(status.message().find("in one run"), std::string::npos) << status.message();
  EXPECT_EQ(pool.available_bytes(), 2 * kPage);
  c.release();
  EXPECT_TRUE(pool.allocate(3 * kPage).ok());
  EXPECT_EQ(pool.allocate(0).status().code(), Code::kInvalidArgument);
  for (const size_t bytes : {5 * kPage, size_t{1} << 45, std::numeric_limits<size_t>::max()}) {
    EXPECT_EQ(pool.allocate(bytes).status().code(), Code::kExhausted);
  }
}

TEST(UnifiedPool, FaultsBehindAPieceAndAfterItsRelease) {
  UnifiedPool pool = pool_of(8, kGuarded);
  TensorHandle piece = take(pool, 2 * kPage);
  volatile std::byte* data = piece.data();
  data[2 * kPage - 1] = std::byte{1};
  EXPECT_DEATH(data[2 * kPage] = std::byte{1}, "");
  piece.release();
  EXPECT_DEATH(data[0] = std::byte{1}, "");
  EXPECT_EQ(take(pool, 2 * kPage).data()[2 * kPage - 1], std::byte{1});  // as it was left
}

TEST(UnifiedPool, AccessKeepsTheBytesAndEndsOnce) {
  UnifiedPool pool = pool_of(2);
  TensorHandle handle = take(pool, 1);
  Result<CpuAccessScope> access = handle.cpu_access(CpuAccess::kReadWrite);
  ASSERT_TRUE(access.ok());
  handle.release();
  EXPECT_EQ(pool.available_bytes(), kPage);
  EXPECT_TRUE(access->end().ok());
  EXPECT_EQ(pool.available_bytes(), 2 * kPage);
  EXPECT_TRUE(access->end().ok());
  EXPECT_EQ(TensorHandle().cpu_access(CpuAccess::kRead).status().code(), Code::kInvalidArgument);
}

TEST(UnifiedPool, SharingAndHandingOutAllocateNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  UnifiedPool pool = pool_of(16);
  const uint64_t before = allocations();
  for (int turn = 0; turn < 100; ++turn) {
    Result<TensorHandle> one = pool.allocate(3 * kPage);
    const TensorHandle two = one.value();
    (void)two.cpu_access(CpuAccess::kRead);
  }
  EXPECT_EQ(allocations() - before, 0u);
}

// Eight threads pass references round; whoever lets the last one go gives the bytes back, and a
// piece never changes under those who hold it.
TEST(UnifiedPool, EightThreadsShareAndReleaseWithoutLosingAPage) {
  UnifiedPool pool = pool_of(64, kPlain, MemoryKind::kMemfd);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  const TensorHandle common = take(pool, kPage);
  for (int t = 1; t <= 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int turn = 0; turn < 1000; ++turn) {
        Result<TensorHandle> mine = pool.allocate(1 + random() % (3 * kPage));
        if (!mine.ok()) continue;
        TensorHandle copy = mine.value();
        std::memset(copy.data(), t, copy.bytes());
        const TensorHandle shared = common;
        mine.value().release();
        if (copy.data()[copy.bytes() - 1] != static_cast<std::byte>(t)) ++wrong;
        if (copy.references() != 1 || shared.references() < 2) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(common.references(), 1);
  EXPECT_EQ(pool.available_bytes(), pool.bytes() - kPage);
}

// The same piece's references go on several threads at once: exactly one frees it.
TEST(UnifiedPool, OfRacingReleasesExactlyOneFrees) {
  UnifiedPool pool = pool_of(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<TensorHandle> handles(4, take(pool, 1));
    std::vector<std::thread> threads;
    for (TensorHandle& handle : handles) threads.emplace_back([&handle] { handle.release(); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(pool.available_bytes(), kPage);
  }
}

TEST(PooledFloats, AreZeroOnWholePagesAndAsMuchOthersMemoryAsACopyKeeps) {
  EXPECT_EQ(pooled_floats(0), nullptr);
  std::shared_ptr<float[]> copy;
  {
    const std::shared_ptr<float[]> numbers = pooled_floats(3000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.get()) % kPage, 0u);
    EXPECT_TRUE(std::all_of(numbers.get(), numbers.get() + 3000, [](float x) { return x == 0; }));
    std::iota(numbers.get(), numbers.get() + 3000, 0.f);
    copy = numbers;
  }
  EXPECT_EQ(copy[2999], 2999.f);
  EXPECT_THROW(pooled_floats(SIZE_MAX / 8), std::bad_alloc);
}

TEST_P(PoolOf, HoldsAKvCache) {
  const auto store = KvStore::create(2, 2, 16, 32, KvFormat::kFloat16, GetParam());
  ASSERT_TRUE(store.ok()) << store.status().message();
  const TensorHandle& memory = store.value()->memory();
  EXPECT_EQ(memory.kind(), GetParam());
  EXPECT_EQ(memory.bytes(), store.value()->bytes_per_slot() * 32);
  EXPECT_EQ(static_cast<const void*>(memory.data()), store.value()->layer(0).keys);
}

TEST(UnifiedPool, TheErrorOfACacheThatFitsNowhereNamesItsSize) {
  const Status status = KvStore::create(1000, 1000, 1024, 1 << 20).status();
  EXPECT_EQ(status.code(), Code::kExhausted);
  EXPECT_NE(status.message().find("MiB"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace sapwood
