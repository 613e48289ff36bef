#include "draft/successor_table.h"

#include <algorithm>

namespace sapwood {
namespace {

constexpr int kWays = 2;

// The finaliser of SplitMix64 (Steele et al., 2014): every bit of the key moves every bit.
uint64_t mixed(uint64_t key) {
  key += 0x9E3779B97F4A7C15u;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return key ^ (key >> 31);
}

}  // namespace

int SuccessorTable::Entry::count() const {
  int n = 0;
  while (n < TopSuccessors::kMost && tokens[n] != kNoToken) ++n;
  return n;
}

SuccessorTable::SuccessorTable() : pairs_(kEntries), singles_(kEntries) {}

void SuccessorTable::clear() {
  std::fill(pairs_.begin(), pairs_.end(), Entry());
  std::fill(singles_.begin(), singles_.end(), Entry());
  clock_ = 0;
}

SuccessorTable::Place SuccessorTable::place_of_pair(int32_t before, int32_t token) {
  const uint64_t hash = mixed((static_cast<uint64_t>(static_cast<uint32_t>(before)) << 32) |
                              static_cast<uint32_t>(token));
  // The tag leaves a pair in 2^31 to chance, and the worst of it is a wrong guess.
  return {hash % (kEntries / kWays) * kWays, static_cast<uint32_t>(hash >> 32) | 1u};
}

SuccessorTable::Place SuccessorTable::place_of_token(int32_t token) {
  // Neighbouring ids stay apart; the tag is the token itself.
  return {static_cast<uint32_t>(token) % (kEntries / kWays) * kWays,
          static_cast<uint32_t>(token) + 1u};
}

const SuccessorTable::Entry* SuccessorTable::find(const std::vector<Entry>& table, Place place) {
  for (int way = 0; way < kWays; ++way) {
    const Entry& entry = table[place.set + way];
    if (entry.tag == place.tag) return &entry;
  }
  return nullptr;
}

const SuccessorTable::Entry* SuccessorTable::after_pair(int32_t before, int32_t token) const {
  return before == kNoToken ? nullptr : find(pairs_, place_of_pair(before, token));
}

const SuccessorTable::Entry* SuccessorTable::after_token(int32_t token) const {
  return token == kNoToken ? nullptr : find(singles_, place_of_token(token));
}

void SuccessorTable::put(std::vector<Entry>& table, Place place, const TopSuccessors& top,
                         bool from_text) {
  Entry* entry = &table[place.set];
  for (int way = 0; way < kWays; ++way) {
    Entry& here = table[place.set + way];
    if (here.tag == place.tag) {
      entry = &here;
      break;
    }
    if (here.refreshed < entry->refreshed) entry = &here;
  }
  entry->tag = place.tag;
  entry->refreshed = clock_;
  entry->from_text = from_text;
  for (int i = 0; i < TopSuccessors::kMost; ++i) {
    const bool known = i < top.count;
    entry->tokens[i] = known ? top.tokens[i] : kNoToken;
    entry->probability[i] =
        known ? static_cast<uint16_t>(std::clamp(top.probability[i], 0.f, 1.f) * 65535.f + 0.5f)
              : uint16_t{0};
  }
}

void SuccessorTable::refresh(int32_t before, int32_t token, const TopSuccessors& top) {
  if (top.count == 0 || token == kNoToken) return;
  ++clock_;
  put(singles_, place_of_token(token), top, false);
  if (before != kNoToken) put(pairs_, place_of_pair(before, token), top, false);
}

void SuccessorTable::begin_with(int32_t before, int32_t token, const TopSuccessors& top) {
  if (top.count == 0 || token == kNoToken) return;
  const bool pair = before != kNoToken;
  std::vector<Entry>& table = pair ? pairs_ : singles_;
  const Place place = pair ? place_of_pair(before, token) : place_of_token(token);
  const Entry* known = find(table, place);
  if (known == nullptr || known->from_text) put(table, place, top, true);
}

}  // namespace sapwood
