#include "draft/ngram_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/file_map.h"
#include "base/sha256.h"
#include "base/write_file.h"

namespace sapwood {
namespace {

constexpr std::string_view kMagic = "SAPNGRAM";
constexpr uint32_t kVersion = 1;
constexpr size_t kDigits = 64;
constexpr size_t kHeaderBytes = 8 + 3 * 4 + kDigits;
constexpr size_t kRecordBytes = (3 + TopSuccessors::kMost) * 4 + TopSuccessors::kMost * 2;
constexpr size_t kDigestBytes = 32;
constexpr int kLeastPairs =
    2;  // a pair that came once says more about the text than about language

using Counts = std::map<int32_t, int>;  // ordered, so that the same text gives the same file

struct Context {
  int32_t before;
  int32_t token;
  int seen;
  const Counts* successors;
};

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string digest_of(std::string_view text) {
  const Sha256Digest digest = sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void append(std::string& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

uint32_t take(std::span<const uint8_t>& in, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<uint32_t>(in[i]) << (8 * i);
  in = in.subspan(bytes);
  return value;
}

// The most frequent first; of equals the lower ids.
void keep_most_frequent(std::vector<Context>& contexts) {
  std::sort(contexts.begin(), contexts.end(), [](const Context& a, const Context& b) {
    if (a.seen != b.seen) return a.seen > b.seen;
    return std::pair(a.before, a.token) < std::pair(b.before, b.token);
  });
  if (contexts.size() > NgramTable::kMostRecords) contexts.resize(NgramTable::kMostRecords);
}

NgramTable::Record record_of(const Context& context) {
  std::vector<std::pair<int, int32_t>> ranked;  // (minus the count, token)
  for (const auto& [token, count] : *context.successors) ranked.emplace_back(-count, token);
  const size_t distinct = ranked.size();
  const size_t kept = std::min<size_t>(distinct, TopSuccessors::kMost);
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<long>(kept), ranked.end());
  NgramTable::Record record{context.before, context.token, {}};
  record.top.count = static_cast<int>(kept);
  for (size_t i = 0; i < kept; ++i) {
    record.top.tokens[i] = ranked[i].second;
    record.top.probability[i] =
        static_cast<float>(-ranked[i].first) / static_cast<float>(context.seen + distinct);
  }
  return record;
}

Status corrupt(const std::string& path, const char* what) {
  return Status(Code::kCorrupt, path + ": " + what + "; make it again with sapwood ngram build");
}

}  // namespace

Result<NgramTable> NgramTable::build(std::span<const std::vector<int32_t>> texts, int vocabulary,
                                     std::string tokenizer_sha256) {
  std::unordered_map<uint64_t, Counts> pairs;
  std::unordered_map<int32_t, Counts> singles;
  for (const std::vector<int32_t>& text : texts) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] < 0 || text[i] >= vocabulary) {
        return Status(Code::kInvalidArgument, "token " + std::to_string(text[i]) +
                                                  " is outside the vocabulary of " +
                                                  std::to_string(vocabulary));
      }
      if (i > 0) ++singles[text[i - 1]][text[i]];
      if (i > 1) {
        ++pairs[static_cast<uint64_t>(text[i - 2]) << 32 | static_cast<uint32_t>(text[i - 1])]
               [text[i]];
      }
    }
  }
  if (singles.empty()) {
    return Status(Code::kInvalidArgument, "there is no text to learn from; give more of it");
  }
  const auto seen = [](const Counts& counts) {
    int sum = 0;
    for (const auto& [token, count] : counts) sum += count;
    return sum;
  };
  std::vector<Context> of_one;
  std::vector<Context> of_two;
  for (const auto& [token, counts] : singles) {
    of_one.push_back({SuccessorTable::kNoToken, token, seen(counts), &counts});
  }
  for (const auto& [key, counts] : pairs) {
    if (const int times = seen(counts); times >= kLeastPairs) {
      of_two.push_back({static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & 0xFFFFFFFF),
                        times, &counts});
    }
  }
  keep_most_frequent(of_one);
  keep_most_frequent(of_two);
  std::vector<Record> records;
  for (const Context& context : of_one) records.push_back(record_of(context));
  for (const Context& context : of_two) records.push_back(record_of(context));
  return of(std::move(records), vocabulary, std::move(tokenizer_sha256));
}

NgramTable NgramTable::of(std::vector<Record> records, int vocabulary,
                          std::string tokenizer_sha256) {
  NgramTable table;
  table.vocabulary_ = vocabulary;
  table.tokenizer_sha256_ = std::move(tokenizer_sha256);
  table.tokenizer_sha256_.resize(kDigits, ' ');
  table.records_ = std::move(records);
  return table;
}

Status NgramTable::write(const std::string& path) const {
  std::string out(kMagic);
  append(out, kVersion, 4);
  append(out, static_cast<uint32_t>(vocabulary_), 4);
  append(out, static_cast<uint32_t>(records_.size()), 4);
  out += tokenizer_sha256_;
  for (const Record& record : records_) {
    append(out, static_cast<uint32_t>(record.before), 4);
    append(out, static_cast<uint32_t>(record.token), 4);
    append(out, static_cast<uint32_t>(record.top.count), 4);
    for (int i = 0; i < TopSuccessors::kMost; ++i) {
      append(out, i < record.top.count ? static_cast<uint32_t>(record.top.tokens[i]) : 0u, 4);
    }
    for (int i = 0; i < TopSuccessors::kMost; ++i) {
      const float p = i < record.top.count ? record.top.probability[i] : 0.f;
      append(out, static_cast<uint32_t>(p * 65535.f + 0.5f), 2);
    }
  }
  out += digest_of(out);
  return write_file(path, out);
}

Result<NgramTable> NgramTable::read(const std::string& path, int vocabulary,
                                    const std::string& tokenizer_sha256) {
  constexpr uint64_t kMostBytes =
      kHeaderBytes + 2 * static_cast<uint64_t>(kMostRecords) * kRecordBytes + kDigestBytes;
  const Result<std::string> whole = read_file(path, kMostBytes);
  if (!whole.ok()) return whole.status();
  const std::string& text = whole.value();
  if (text.size() < kHeaderBytes + kDigestBytes || !text.starts_with(kMagic)) {
    return corrupt(path, "not an n-gram table");
  }
  const std::string_view body = std::string_view(text).substr(0, text.size() - kDigestBytes);
  if (digest_of(body) != text.substr(body.size())) {
    return corrupt(path, "damaged, its checksum does not fit");
  }
  std::span<const uint8_t> in = bytes_of(text).subspan(kMagic.size());
  if (take(in, 4) != kVersion) return corrupt(path, "an n-gram table of another version");
  NgramTable table;
  table.vocabulary_ = static_cast<int>(take(in, 4));
  const uint32_t count = take(in, 4);
  table.tokenizer_sha256_ = text.substr(kHeaderBytes - kDigits, kDigits);
  in = in.subspan(kDigits);
  if (table.vocabulary_ != vocabulary || table.tokenizer_sha256_ != tokenizer_sha256) {
    return Status(Code::kInvalidArgument,
                  path + ": an n-gram table of another tokenizer; build one with this bundle");
  }
  if (in.size() != count * kRecordBytes + kDigestBytes) {
    return corrupt(path, "not as long as it says");
  }
  const auto known = [&](int32_t token) { return token >= 0 && token < vocabulary; };
  table.records_.resize(count);
  for (Record& record : table.records_) {
    record.before = static_cast<int32_t>(take(in, 4));
    record.token = static_cast<int32_t>(take(in, 4));
    record.top.count = static_cast<int>(take(in, 4));
    bool sound = known(record.token) && record.top.count >= 1 &&
                 record.top.count <= TopSuccessors::kMost &&
                 (record.before == SuccessorTable::kNoToken || known(record.before));
    for (int i = 0; i < TopSuccessors::kMost; ++i) {
      record.top.tokens[i] = static_cast<int32_t>(take(in, 4));
      sound = sound && (i >= record.top.count || known(record.top.tokens[i]));
    }
    for (int i = 0; i < TopSuccessors::kMost; ++i) {
      record.top.probability[i] = static_cast<float>(take(in, 2)) / 65535.f;
    }
    if (!sound) return corrupt(path, "a record in it cannot be true");
  }
  return table;
}

}  // namespace sapwood
