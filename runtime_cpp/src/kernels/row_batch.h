// What one pass over the model computes: which tokens, where they stand, and which KV slots each
// sees.
//
// All rows share a committed prefix; beyond it every row has a path of its own, the slots of its
// ancestors and, last, its own slot. Both are in position order, so row r sees the sequence
//
//   context_slots[0 .. context) ++ path_slots[path_begin[r] .. path_end[r])
//
// and the j-th slot of that sequence holds position j. Paths may overlap in `path_slots`: a prompt
// of n tokens is n rows over one flat path of n slots, with path_begin 0 and path_end 1, 2, ..., n.
//
// Example: a root (slot 7, after seven committed tokens) with two children in slots 8 and 9.
//   tokens     {t, a, b}      positions {7, 8, 8}      slots {7, 8, 9}
//   context    {0, 1, 2, 3, 4, 5, 6}
//   path_slots {7,  7, 8,  7, 9}     path_begin {0, 1, 3}     path_end {1, 3, 5}
#pragma once

#include <cstdint>
#include <span>

namespace sapwood {

struct RowBatch {
  std::span<const int32_t> tokens;         // [rows]
  std::span<const int32_t> positions;      // [rows], context + path length - 1
  std::span<const int32_t> slots;          // [rows], where the row's K and V are written
  std::span<const int32_t> context_slots;  // [context]
  std::span<const int32_t> path_slots;     // flat
  std::span<const int32_t> path_begin;     // [rows]
  std::span<const int32_t> path_end;       // [rows], path_slots[path_end[r] - 1] == slots[r]
  std::span<const int32_t> output_rows;    // rows whose logits are wanted, any order

  int rows() const { return static_cast<int>(tokens.size()); }
  int context() const { return static_cast<int>(context_slots.size()); }
};

}  // namespace sapwood
