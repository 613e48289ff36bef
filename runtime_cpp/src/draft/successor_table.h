// What the target itself said came next, the last time it stood at a token or a pair of tokens:
// token recycling (Luo et al., 2024), with pairs as well as single tokens and with probabilities.
//
// Every row of every verify pass, those of refuted guesses too, refreshes the entry of its last
// token and of its last two. Memory is fixed and allocated once: two tables of two-way sets, in
// which the entry refreshed longer ago gives way.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "draft/top_successors.h"

namespace sapwood {

class SuccessorTable {
 public:
  static constexpr int32_t kNoToken = -1;
  static constexpr int kEntries = 1 << 15;  // of each of the two tables

  struct alignas(64) Entry {  // one line of a cache
    uint32_t tag = 0;         // 0: unused
    uint32_t refreshed = 0;
    std::array<int32_t, TopSuccessors::kMost> tokens;
    std::array<uint16_t, TopSuccessors::kMost> probability;  // in 1/65535, falling
    bool from_text = false;  // not the target's own word, but what a saved table says

    float probability_of(int rank) const { return static_cast<float>(probability[rank]) / 65535.f; }
    // Entries behind the last have token kNoToken.
    int count() const;
  };

  SuccessorTable();

  void clear();

  // After the tokens `before` (kNoToken at the beginning of a text) and `token` came `top`.
  void refresh(int32_t before, int32_t token, const TopSuccessors& top);

  // A saved table says so: for contexts that the target has said nothing about.
  void begin_with(int32_t before, int32_t token, const TopSuccessors& top);

  // Null if unknown, or if it gave way to another.
  const Entry* after_pair(int32_t before, int32_t token) const;
  const Entry* after_token(int32_t token) const;

  static constexpr size_t bytes() { return 2 * static_cast<size_t>(kEntries) * sizeof(Entry); }

 private:
  struct Place {
    size_t set;  // index of its first entry
    uint32_t tag;
  };
  static Place place_of_pair(int32_t before, int32_t token);
  static Place place_of_token(int32_t token);
  static const Entry* find(const std::vector<Entry>& table, Place place);
  void put(std::vector<Entry>& table, Place place, const TopSuccessors& top, bool from_text);

  std::vector<Entry> pairs_;
  std::vector<Entry> singles_;
  uint32_t clock_ = 0;
};

}  // namespace sapwood
