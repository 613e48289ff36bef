#include "engine/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sapwood {
namespace {

#include "engine/scenario_weights.inc"

constexpr std::array<std::string_view, kScenarios> kNames = {"structure", "reasoning", "creativity",
                                                             "knowledge"};

constexpr std::array<ScenarioTemplate, kScenarios> kTemplates = {
    {{3, 4, 0.3f}, {3, 4, 0.3f}, {2, 3, 0.3f}, {2, 3, 0.3f}}};

// What is asked for stands at a prompt's beginning or end, around what it is asked of.
constexpr size_t kWordsBegin = 600;  // bytes
constexpr size_t kWordsEnd = 300;
constexpr size_t kShapeBytes = 4096;

// Where each kind of shape feature begins, and how many bins it has.
constexpr int kPunctuation = ScenarioFeatures::kWords;  // one for each mark of ASCII
constexpr int kLengthBins = kPunctuation + 32;          // by powers of two
constexpr int kLineBins = kLengthBins + 13;             // likewise
constexpr int kDigitBins = kLineBins + 8;               // by their share
constexpr int kMarkBins = kDigitBins + 5;               // punctuation but that of sentences
constexpr int kNumberBins = kMarkBins + 5;              // how many numbers
constexpr int kForeignBins = kNumberBins + 5;           // bytes beyond ASCII
constexpr int kAsks = kForeignBins + 3;                 // ends with a question mark
static_assert(kAsks + 1 == ScenarioFeatures::kCount);

bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_letter(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}
unsigned char lower(unsigned char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c + ('a' - 'A')) : c;
}

// Numbered through, as they lie in ASCII; -1: none.
int punctuation(unsigned char c) {
  if (c >= '!' && c <= '/') return c - '!';
  if (c >= ':' && c <= '@') return c - ':' + 15;
  if (c >= '[' && c <= '`') return c - '[' + 22;
  if (c >= '{' && c <= '~') return c - '{' + 28;
  return -1;
}

// FNV-1a, 32 bits (Fowler, Noll and Vo).
class Hash {
 public:
  void add(unsigned char byte) { value_ = (value_ ^ byte) * 16777619u; }
  int bucket() const {
    return static_cast<int>((value_ ^ (value_ >> 15)) % ScenarioFeatures::kWords);
  }
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 2166136261u;
};

Hash with(Hash hash, uint32_t word) {
  for (int i = 0; i < 4; ++i) hash.add(static_cast<unsigned char>(word >> (8 * i)));
  return hash;
}

template <size_t Edges>
int bin_of(double value, const std::array<double, Edges>& from) {
  return static_cast<int>(std::upper_bound(from.begin(), from.end(), value) - from.begin());
}

int log2_bin(size_t value, int bins) {
  int bin = 0;
  while (value > 1 && bin < bins - 1) {
    value /= 2;
    ++bin;
  }
  return bin;
}

}  // namespace

std::optional<Scenario> parse_scenario(std::string_view name) {
  const auto known = std::find(kNames.begin(), kNames.end(), name);
  if (known == kNames.end()) return std::nullopt;
  return static_cast<Scenario>(known - kNames.begin());
}

std::string_view scenario_name(Scenario scenario) { return kNames[static_cast<size_t>(scenario)]; }

const ScenarioTemplate& template_of(Scenario scenario) {
  return kTemplates[static_cast<size_t>(scenario)];
}

ScenarioFeatures::ScenarioFeatures(std::string_view prompt) {
  if (prompt.size() <= kWordsBegin + kWordsEnd) {
    add_words(prompt);
  } else {
    add_words(prompt.substr(0, kWordsBegin));
    add_words(prompt.substr(prompt.size() - kWordsEnd));
  }
  add_shape(prompt);
}

// A number is one word, whatever its digits; words are also taken by their beginnings.
void ScenarioFeatures::add_words(std::string_view text) {
  constexpr int kBeginning = 5;
  uint32_t before = 0;  // no word
  size_t at = 0;
  while (at < text.size()) {
    const auto byte = [&] { return static_cast<unsigned char>(text[at]); };
    Hash word;
    if (is_digit(byte())) {
      while (at < text.size() && is_digit(byte())) ++at;
      word.add('0');
    } else if (is_letter(byte())) {
      Hash beginning;
      beginning.add('<');
      int length = 0;
      for (; at < text.size() && is_letter(byte()); ++at) {
        word.add(lower(byte()));
        if (length++ < kBeginning) beginning.add(lower(byte()));
      }
      if (length > kBeginning) present_.set(static_cast<size_t>(beginning.bucket()));
    } else {
      ++at;
      continue;
    }
    present_.set(static_cast<size_t>(word.bucket()));
    present_.set(static_cast<size_t>(with(with(Hash(), before), word.value()).bucket()));
    before = word.value();
  }
}

void ScenarioFeatures::add_shape(std::string_view text) {
  const size_t length = text.size();
  text = text.substr(0, kShapeBytes);
  int digits = 0;
  int marks = 0;
  int numbers = 0;
  int foreign = 0;
  size_t lines = 1;
  unsigned char before = ' ';
  unsigned char last = ' ';  // but for blanks
  for (const char each : text) {
    const auto c = static_cast<unsigned char>(each);
    if (is_digit(c)) {
      ++digits;
      numbers += is_digit(before) ? 0 : 1;
    }
    foreign += c >= 0x80 ? 1 : 0;
    lines += c == '\n' ? 1 : 0;
    if (const int mark = punctuation(c); mark >= 0) {
      present_.set(static_cast<size_t>(kPunctuation + mark));
      marks += std::string_view(".,?!'\"-").find(each) == std::string_view::npos ? 1 : 0;
    }
    if (c > ' ') last = c;
    before = c;
  }
  const double all = static_cast<double>(std::max<size_t>(text.size(), 1));
  const auto set = [&](int from, int bin) { present_.set(static_cast<size_t>(from + bin)); };
  set(kLengthBins, log2_bin(length, 13));
  set(kLineBins, log2_bin(lines, 8));
  set(kDigitBins, bin_of(digits / all, std::array{1e-9, 0.01, 0.03, 0.08}));
  set(kMarkBins, bin_of(marks / all, std::array{1e-9, 0.01, 0.03, 0.08}));
  set(kNumberBins, bin_of(numbers, std::array{1.0, 2.0, 3.0, 5.0}));
  set(kForeignBins, bin_of(foreign / all, std::array{1e-9, 0.05}));
  if (last == '?') set(kAsks, 0);
}

// Words share one vote of length one; sums are of integers, so that their order does not matter.
ScenarioGuess guess_scenario(const ScenarioFeatures& features) {
  std::array<int, kScenarios> words{};
  std::array<int, kScenarios> shape{};
  int count = 0;
  for (int i = 0; i < ScenarioFeatures::kCount; ++i) {
    if (!features.present()[static_cast<size_t>(i)]) continue;
    const bool is_word = i < ScenarioFeatures::kWords;
    count += is_word ? 1 : 0;
    for (size_t s = 0; s < kScenarios; ++s) (is_word ? words : shape)[s] += kWeights[i][s];
  }
  ScenarioGuess guess;
  std::array<double, kScenarios> score{};
  for (size_t s = 0; s < kScenarios; ++s) {
    score[s] = kBias[s] + kShapeScale * shape[s] +
               (count > 0 ? kWordScale * words[s] / std::sqrt(static_cast<double>(count)) : 0.0);
  }
  const auto best = std::max_element(score.begin(), score.end());
  guess.scenario = static_cast<Scenario>(best - score.begin());
  double sum = 0;
  for (size_t s = 0; s < kScenarios; ++s) {
    sum += guess.probability[s] = std::exp(score[s] - *best);
  }
  for (double& each : guess.probability) each /= sum;
  return guess;
}

}  // namespace sapwood
