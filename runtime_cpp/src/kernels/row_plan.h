// Which blocks of rows a linear layer takes N rows in.
//
// A kernel has loops for blocks of a few rows each, because what pays for 8 rows (one panel, its
// codes unpacked once) does not for 2 (two panels, their loads in flight together). The bits are
// the same whichever serves a row, so the choice is free: it is made from what each block costs on
// this machine, measured once for a weight format, and looked up by the number of rows left.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace sapwood {

struct LinearFormat;
struct KernelTable;

// A loop of the linear kernels: so many rows meet so many panels (1 or 2) at once.
struct RowBlock {
  uint8_t rows;
  uint8_t panels;
};

class RowPlan {
 public:
  static constexpr int kRows = 64;  // with more rows left, the block that 64 rows begin with

  // The cheapest way to make up every number of rows. costs[i]: of one blocks[i], in any unit,
  // above 0. The first block has one row; at most 255 blocks. Among equals the widest.
  static RowPlan cheapest(std::span<const RowBlock> blocks, std::span<const double> costs);
  // All rows by blocks[only] as long as they fill it, then by the first: for measuring and tests.
  static RowPlan single(std::span<const RowBlock> blocks, int only);

  // rows_left >= 1. An index into the table's row_blocks.
  int block(int rows_left) const { return first_[rows_left < kRows ? rows_left : kRows]; }

 private:
  std::array<uint8_t, kRows + 1> first_{};
};

// For this table and format, measured when first asked for (a millisecond or two, on one thread).
// Thread-safe; lives for ever.
const RowPlan& measured_row_plan(const KernelTable& table, const LinearFormat& format);

}  // namespace sapwood
