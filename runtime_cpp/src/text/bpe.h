// Byte-pair encoding: symbols of a piece of text are merged, best rank first (Sennrich, Haddow and
// Birch, 2016), in the order that Hugging Face's library keeps among equals: from left to right.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace sapwood {

// What two neighbours become: a hash table with open addressing.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = -1;  // lower merges first; -1: they do not merge
    int32_t merged = 0;
  };

  void reserve(size_t count);  // before the first add; at most so many are added
  void add(int32_t left, int32_t right, Merge merge);  // the latest of equal pairs counts
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Cell {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  size_t place_of(uint64_t key) const;

  std::vector<Cell> cells_;
};

struct BpeOptions {
  bool bytes = false;          // pieces are bytes, each written as a character of GPT-2's alphabet
  bool byte_fallback = false;  // a character without a token becomes tokens <0x..>
  bool fuse_unknown = false;   // neighbouring unknown characters become one token
  int32_t unknown = Vocabulary::kNone;
  bool ignore_merges = false;  // a piece that is a token is not merged up
};

// Not thread-safe: one piece at a time.
class Bpe {
 public:
  Bpe() = default;
  Bpe(const Vocabulary& vocabulary, const BpeOptions& options, MergeTable merges);

  // The ids of a piece (valid UTF-8, not empty). `is_special`: tokens that a whole piece must not
  // become, or null.
  void encode(const Vocabulary& vocabulary, std::string_view piece,
              const std::vector<bool>* is_special, std::vector<int32_t>* ids);

 private:
  struct Symbol {
    int32_t id;
    int32_t previous;
    int32_t next;
  };
  struct Candidate {
    int32_t rank;
    int32_t place;
    int32_t merged;
  };

  void add_symbol(int32_t id) { symbols_.push_back({id, 0, 0}); }
  void symbols_of_bytes(std::string_view piece);
  void symbols_of_characters(const Vocabulary& vocabulary, std::string_view piece);
  void propose(int32_t place);
  void merge();

  BpeOptions options_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_ = {};  // of each byte: its character's token, or its <0x..>
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

// GPT-2's alphabet: the character that each byte is written as. Printable Latin-1 characters stand
// for themselves, the other bytes for the characters from U+0100 upwards, in order.
const std::array<char32_t, 256>& byte_alphabet();

// A token's text in that alphabet as bytes; false if a character of it is not in the alphabet.
bool from_byte_alphabet(std::string_view text, std::string* bytes);

// The text of the token that stands for a byte, "<0x0A>".
std::string byte_token(uint8_t byte);

}  // namespace sapwood
