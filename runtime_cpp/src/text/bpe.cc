#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "text/utf8.h"

namespace sapwood {
namespace {

constexpr int32_t kGone = -1;

uint64_t key_of(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

}  // namespace

void MergeTable::reserve(size_t count) {
  cells_.assign(std::bit_ceil(std::max<size_t>(count * 2, 16)), Cell());
}

// The cell of a key, or the empty one where it belongs: at most half of them are taken.
size_t MergeTable::place_of(uint64_t key) const {
  const size_t mask = cells_.size() - 1;
  size_t place = static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
  while (cells_[place].key != key && cells_[place].key != kEmpty) place = (place + 1) & mask;
  return place;
}

void MergeTable::add(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  cells_[place_of(key)] = {key, merge};
}

MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  if (cells_.empty()) return {};
  return cells_[place_of(key_of(left, right))].merge;
}

const std::array<char32_t, 256>& byte_alphabet() {
  static const std::array<char32_t, 256> alphabet = [] {
    std::array<char32_t, 256> made = {};
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      made[static_cast<size_t>(byte)] = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
    }
    return made;
  }();
  return alphabet;
}

bool from_byte_alphabet(std::string_view text, std::string* bytes) {
  static const std::array<int, 0x144> bytes_of = [] {
    std::array<int, 0x144> made;
    made.fill(-1);
    for (size_t byte = 0; byte < 256; ++byte) made[byte_alphabet()[byte]] = static_cast<int>(byte);
    return made;
  }();
  bytes->clear();
  while (!text.empty()) {
    const Utf8Character first = utf8_first(text);
    if (first.value >= bytes_of.size() || bytes_of[first.value] < 0) return false;
    bytes->push_back(static_cast<char>(bytes_of[first.value]));
    text.remove_prefix(static_cast<size_t>(first.bytes));
  }
  return true;
}

std::string byte_token(uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

Bpe::Bpe(const Vocabulary& vocabulary, const BpeOptions& options, MergeTable merges)
    : options_(options), merges_(std::move(merges)) {
  for (size_t byte = 0; byte < 256; ++byte) {
    std::string text;
    if (options_.bytes) {
      append_utf8(byte_alphabet()[byte], &text);
    } else {
      text = byte_token(static_cast<uint8_t>(byte));
    }
    byte_ids_[byte] = vocabulary.find(text);
  }
}

void Bpe::encode(const Vocabulary& vocabulary, std::string_view piece,
                 const std::vector<bool>* is_special, std::vector<int32_t>* ids) {
  if (options_.ignore_merges) {
    std::string text(piece);
    if (options_.bytes) {
      text.clear();
      for (const char byte : piece) {
        append_utf8(byte_alphabet()[static_cast<uint8_t>(byte)], &text);
      }
    }
    const int32_t id = vocabulary.find(text);
    if (id != Vocabulary::kNone &&
        (is_special == nullptr || !(*is_special)[static_cast<size_t>(id)])) {
      ids->push_back(id);
      return;
    }
  }
  symbols_.clear();
  if (options_.bytes) {
    symbols_of_bytes(piece);
  } else {
    symbols_of_characters(vocabulary, piece);
  }
  merge();
  for (const Symbol& symbol : symbols_) {
    if (symbol.id != kGone) ids->push_back(symbol.id);
  }
}

// A byte without a token has no place in the vocabulary; Hugging Face's library leaves it out.
void Bpe::symbols_of_bytes(std::string_view piece) {
  for (const char byte : piece) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id != Vocabulary::kNone) {
      add_symbol(id);
    } else if (options_.unknown != Vocabulary::kNone) {
      add_symbol(options_.unknown);
    }
  }
}

void Bpe::symbols_of_characters(const Vocabulary& vocabulary, std::string_view piece) {
  bool unknown = false;  // one is waiting for what it may be fused with
  const auto settle = [&] {
    if (unknown) add_symbol(options_.unknown);
    unknown = false;
  };
  while (!piece.empty()) {
    const std::string_view character =
        piece.substr(0, static_cast<size_t>(utf8_first(piece).bytes));
    piece.remove_prefix(character.size());
    if (const int32_t id = vocabulary.find(character); id != Vocabulary::kNone) {
      settle();
      add_symbol(id);
      continue;
    }
    const auto has_token = [&](char byte) {
      return byte_ids_[static_cast<uint8_t>(byte)] != Vocabulary::kNone;
    };
    if (options_.byte_fallback && std::all_of(character.begin(), character.end(), has_token)) {
      // The library puts a waiting unknown token behind these bytes; so do we.
      for (const char byte : character) add_symbol(byte_ids_[static_cast<uint8_t>(byte)]);
      continue;
    }
    if (options_.unknown == Vocabulary::kNone) continue;
    if (!options_.fuse_unknown) settle();
    unknown = true;
  }
  settle();
}

void Bpe::propose(int32_t place) {
  const Symbol& left = symbols_[static_cast<size_t>(place)];
  if (left.next < 0) return;
  const MergeTable::Merge found =
      merges_.find(left.id, symbols_[static_cast<size_t>(left.next)].id);
  if (found.rank < 0) return;
  heap_.push_back({found.rank, place, found.merged});
  const auto later = [](const Candidate& a, const Candidate& b) {
    return std::pair(a.rank, a.place) > std::pair(b.rank, b.place);
  };
  std::push_heap(heap_.begin(), heap_.end(), later);
}

void Bpe::merge() {
  const int32_t count = static_cast<int32_t>(symbols_.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols_[static_cast<size_t>(i)].previous = i - 1;
    symbols_[static_cast<size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
  heap_.clear();
  for (int32_t i = 0; i < count; ++i) propose(i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.rank, a.place) > std::pair(b.rank, b.place);
    });
    const Candidate best = heap_.back();
    heap_.pop_back();
    Symbol& left = symbols_[static_cast<size_t>(best.place)];
    if (left.id == kGone || left.next < 0) continue;
    Symbol& right = symbols_[static_cast<size_t>(left.next)];
    const MergeTable::Merge now = merges_.find(left.id, right.id);
    if (now.rank < 0 || now.merged != best.merged) continue;  // a neighbour has changed since
    left.id = best.merged;
    left.next = right.next;
    right.id = kGone;
    if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].previous = best.place;
    if (left.previous >= 0) propose(left.previous);
    propose(best.place);
  }
}

}  // namespace sapwood
