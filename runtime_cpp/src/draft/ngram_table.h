// What usually follows a token and a pair of tokens in some text: built once, saved, and given to a
// drafter to begin with (`sapwood ngram build`).
//
// A context seen n times with d distinct successors gives count / (n + d) to each, as in the n-gram
// drafter. Where the target says something of its own about a context, that takes over.
//
// The file, little-endian: "SAPNGRAM", version, vocabulary and number of records (32 bits each),
// the SHA-256 of the tokenizer in 64 hexadecimal digits, the records (before, token, count, eight
// tokens: 32 bits each; eight probabilities in 1/65535: 16 bits each), and the SHA-256 of all that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/successor_table.h"

namespace sapwood {

class NgramTable {
 public:
  struct Record {
    int32_t before;  // SuccessorTable::kNoToken: of a single token
    int32_t token;
    TopSuccessors top;
  };
  // Most records of either kind: three quarters of a successor table.
  static constexpr int kMostRecords = SuccessorTable::kEntries / 4 * 3;

  // From texts as token ids, each in [0, vocabulary). Pairs that came only once are left out, and
  // of too many contexts the rarest. kInvalidArgument for an id outside, or no two tokens in a row.
  static Result<NgramTable> build(std::span<const std::vector<int32_t>> texts, int vocabulary,
                                  std::string tokenizer_sha256);

  // Of records that were found out otherwise (draft/target_survey.h).
  static NgramTable of(std::vector<Record> records, int vocabulary, std::string tokenizer_sha256);

  // kCorrupt for a file that is not whole, kInvalidArgument for one of another tokenizer.
  static Result<NgramTable> read(const std::string& path, int vocabulary,
                                 const std::string& tokenizer_sha256);
  // Under a temporary name first, then renamed.
  Status write(const std::string& path) const;

  std::span<const Record> records() const { return records_; }

 private:
  int vocabulary_ = 0;
  std::string tokenizer_sha256_;
  std::vector<Record> records_;
};

}  // namespace sapwood
