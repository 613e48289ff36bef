#include "verify/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "verify/exponential.h"
#include "verify/isa/vector_loops.h"
#include "verify/random.h"

namespace sapwood {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(int n, std::mt19937& random, float spread = 3.f) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// The transform written as plainly as it can be, in double, on a sorted list.
std::map<int, double> plain_law(std::vector<double> logits, const SamplingOptions& options,
                                const std::vector<int32_t>& history) {
  std::vector<int32_t> seen = history;
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const int32_t token : seen) {
    double& logit = logits[token];
    logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
  }
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  if (options.greedy()) return {{order[0], 1.0}};
  if (options.top_k > 0 && options.top_k < static_cast<int>(order.size())) {
    order.resize(options.top_k);
  }
  const auto weight = [&](int token) {
    return std::exp((logits[token] - logits[order[0]]) / options.temperature);
  };
  if (options.top_p < 1) {
    double whole = 0;
    for (const int token : order) whole += weight(token);
    double reached = 0;
    size_t n = 0;
    while (n < order.size() && reached < options.top_p * whole) reached += weight(order[n++]);
    order.resize(std::max<size_t>(n, 1));
  }
  std::erase_if(order, [&](int token) {
    return weight(token) < options.min_p * (1 - 1e-6) || weight(token) == 0;
  });
  double whole = 0;
  for (const int token : order) whole += weight(token);
  std::map<int, double> law;
  for (const int token : order) law[token] = weight(token) / whole;
  return law;
}

TEST(Random, PhiloxGivesThePublishedAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, UniformsDependOnSeedIndexAndStreamAndFillTheUnitInterval) {
  double sum = 0;
  for (int i = 0; i < 20000; ++i) {
    const double u = counter_uniform(42, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ASSERT_NE(u, counter_uniform(43, i));
    ASSERT_NE(u, counter_uniform(42, i, RandomStream::kDraft));
    ASSERT_EQ(u, counter_uniform(42, i));
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
}

TEST(Exponential, IsAccurateAndExactlyZeroFarDown) {
  double worst = 0;
  for (double x = -86.9; x <= 0; x += 0.0037) {
    const float at = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(at));
    worst = std::max(worst, std::abs(exp_nonpositive(at) / exact - 1));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(exp_nonpositive(0.f), 1.f);
  EXPECT_EQ(exp_nonpositive(-88.f), 0.f);
  EXPECT_EQ(exp_nonpositive(-kInfinity), 0.f);
}

TEST(VectorLoops, EveryInstructionSetGivesTheSameBits) {
  std::mt19937 random(4);
  const std::string chosen(kernels().name);
  for (const int n : {1, 15, 16, 33, 1000, 4099}) {
    std::vector<float> values = random_logits(n, random, 20.f);
    for (float& value : values) value = -std::abs(value);
    values[random() % n] = -kInfinity;
    std::vector<float> first(n + 2);
    for (const KernelTable* table : runnable_kernels()) {
      ASSERT_TRUE(set_kernels(table->name));
      const VectorLoops& loops = vector_loops();
      std::vector<float> out(n + 2);
      bool bad = false;
      loops.scale(values.data(), n, 0.25f, 0.7f, out.data());
      out[n] = loops.largest(values.data(), n, &bad);
      out[n + 1] = static_cast<float>(loops.mass(values.data(), n));
      EXPECT_FALSE(bad);
      if (table == runnable_kernels().front()) first = out;
      EXPECT_EQ(std::memcmp(out.data(), first.data(), out.size() * sizeof(float)), 0)
          << table->name << ' ' << n;
    }
    double plain = 0;
    for (const float value : values) plain += exp_nonpositive(value);
    EXPECT_NEAR(first[n + 1], plain, plain * 1e-6);
    EXPECT_EQ(first[n], *std::max_element(values.begin(), values.end()));
  }
  ASSERT_TRUE(set_kernels(chosen));
}

TEST(Sampling, ArgmaxTakesTheLowestIdOnATie) {
  for (const int n : {1, 5, 16, 17, 1024, 1500, 49152}) {
    std::vector<float> logits(n, -2.f);
    EXPECT_EQ(argmax(logits), 0);
    logits[n - 1] = 1.f;
    EXPECT_EQ(argmax(logits), n - 1);
    logits[n / 2] = 1.f;
    EXPECT_EQ(argmax(logits), n / 2);
  }
}

TEST(Sampling, ArgmaxRefusesWhatIsNotANumber) {
  for (const int n : {3, 40, 3000}) {
    for (const float wrong : {std::nanf(""), kInfinity}) {
      for (const int at : {0, n / 2, n - 1}) {
        std::vector<float> logits(n, 0.f);
        logits[at] = wrong;
        EXPECT_EQ(argmax(logits), -1);
      }
    }
    EXPECT_EQ(argmax(std::vector<float>(n, -kInfinity)), -1);
  }
}

TEST(Sampling, EveryFilterAloneAndTogetherEqualsThePlainTransform) {
  std::mt19937 random(3);
  const int vocabulary = 1500;
  Sampler sampler(vocabulary);
  for (const float temperature : {0.f, 0.3f, 1.f, 2.5f}) {
    for (const int top_k : {0, 1, 7, 400, 5000}) {
      for (const float top_p : {1.f, 0.95f, 0.4f, 1e-6f}) {
        for (const float min_p : {0.f, 0.05f, 1.f}) {
          for (const float penalty : {1.f, 1.3f, 0.8f}) {
            const SamplingOptions options{.temperature = temperature,
                                          .top_k = top_k,
                                          .top_p = top_p,
                                          .min_p = min_p,
                                          .repetition_penalty = penalty};
            const std::vector<float> logits = random_logits(vocabulary, random);
            std::vector<int32_t> history(50);
            for (int32_t& token : history) token = static_cast<int32_t>(random() % vocabulary);
            ASSERT_TRUE(sampler.start(options, history).ok());
            const Result<TokenLaw> law = sampler.law(logits);
            ASSERT_TRUE(law.ok()) << law.status().message();
            const std::map<int, double> expected =
                plain_law({logits.begin(), logits.end()}, options, history);
            ASSERT_EQ(law->size(), static_cast<int>(expected.size()))
                << temperature << ' ' << top_k << ' ' << top_p << ' ' << min_p << ' ' << penalty;
            int entry = 0;
            for (const auto& [token, probability] : expected) {
              ASSERT_EQ(law->token(entry), token);
              ASSERT_NEAR(law->log_p[entry], std::log(probability), 2e-5);
              ASSERT_EQ(law->log_probability(token), law->log_p[entry]);
              ++entry;
            }
          }
        }
      }
    }
  }
}

TEST(Sampling, TiesAtTheTopKBorderGoToTheLowestIds) {
  Sampler sampler(2000);
  std::vector<float> logits(2000, 1.f);
  logits[1999] = 2.f;
  ASSERT_TRUE(sampler.start({.temperature = 1.f, .top_k = 3}, {}).ok());
  const Result<TokenLaw> law = sampler.law(logits);
  ASSERT_TRUE(law.ok());
  ASSERT_EQ(law->size(), 3);
  EXPECT_EQ(law->token(0), 0);
  EXPECT_EQ(law->token(1), 1);
  EXPECT_EQ(law->token(2), 1999);
  EXPECT_EQ(law->log_probability(2), -kInfinity);
}

TEST(Sampling, MaskedTokensStayOutOfTheLaw) {
  std::vector<float> logits(300, -kInfinity);
  logits[17] = 1.f;
  logits[200] = 1.f;
  Sampler sampler(300);
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 1.f}, SamplingOptions{.temperature = 1.f, .top_k = 50},
        SamplingOptions{.temperature = 1.f, .top_p = 0.9f},
        SamplingOptions{.temperature = 1.f, .top_k = 50, .top_p = 0.999f, .min_p = 0.1f}}) {
    ASSERT_TRUE(sampler.start(options, {}).ok());
    const Result<TokenLaw> law = sampler.law(logits);
    ASSERT_TRUE(law.ok());
    EXPECT_NEAR(law->log_probability(17), std::log(0.5), 1e-6);
    EXPECT_NEAR(law->log_probability(200), std::log(0.5), 1e-6);
    EXPECT_EQ(law->log_probability(18), -kInfinity);
  }
}

TEST(Sampling, ThePenaltySeesEachTokenOnceAndForgetsAtTheNextStart) {
  Sampler sampler(4);
  const std::vector<float> logits = {2.f, 1.9f, -1.f, -1.5f};
  ASSERT_TRUE(sampler.start({.repetition_penalty = 2.f}, {}).ok());
  EXPECT_EQ(sampler.choose(logits, 0).value(), 0);
  sampler.push(0);
  EXPECT_EQ(sampler.choose(logits, 1).value(), 1);
  sampler.push(1);
  sampler.push(1);
  EXPECT_EQ(sampler.choose(logits, 2).value(), 0);  // 1.0 against 0.95: not penalised twice
  ASSERT_TRUE(sampler.start({.repetition_penalty = 2.f}, {}).ok());
  EXPECT_EQ(sampler.choose(logits, 0).value(), 0);
}

TEST(Sampling, FrequenciesOfManySeedsFollowTheLaw) {
  std::mt19937 random(21);
  Sampler sampler(6);
  const std::vector<float> logits = random_logits(6, random, 1.f);
  std::vector<double> seen(6, 0);
  constexpr int kSeeds = 50000;
  std::vector<double> p(6);
  for (int seed = 0; seed < kSeeds; ++seed) {
    ASSERT_TRUE(sampler.start({.temperature = 0.7f, .seed = static_cast<uint64_t>(seed)}, {}).ok());
    seen[sampler.choose(logits, 5).value()] += 1;
    if (seed == 0) {
      const Result<TokenLaw> law = sampler.law(logits);
      for (int i = 0; i < 6; ++i) p[i] = std::exp(law->log_p[i]);
    }
  }
  double chi_square = 0;
  for (int i = 0; i < 6; ++i) {
    chi_square += (seen[i] - kSeeds * p[i]) * (seen[i] - kSeeds * p[i]) / (kSeeds * p[i]);
  }
  EXPECT_LT(chi_square, 25.7);  // 5 degrees of freedom, one in ten thousand; seeds are fixed
}

TEST(Sampling, DamagedLogitsAreAnErrorAndNotAToken) {
  Sampler sampler(8);
  for (const float temperature : {0.f, 1.f}) {
    ASSERT_TRUE(sampler.start({.temperature = temperature}, {}).ok());
    std::vector<float> logits(8, 0.f);
    logits[3] = std::nanf("");
    EXPECT_EQ(sampler.choose(logits, 0).status().code(), Code::kInternal);
    EXPECT_FALSE(sampler.choose(std::vector<float>(7, 0.f), 0).ok());
  }
}

TEST(Sampling, OptionsOutOfRangeAreNamed) {
  const auto message = [](const SamplingOptions& options) { return options.check().message(); };
  EXPECT_NE(message({.temperature = -1.f}).find("temperature"), std::string::npos);
  EXPECT_NE(message({.temperature = std::nanf("")}).find("temperature"), std::string::npos);
  EXPECT_NE(message({.top_k = -1}).find("top-k"), std::string::npos);
  EXPECT_NE(message({.top_p = 0.f}).find("top-p"), std::string::npos);
  EXPECT_NE(message({.min_p = 1.5f}).find("min-p"), std::string::npos);
  EXPECT_NE(message({.repetition_penalty = 0.f}).find("repetition"), std::string::npos);
  EXPECT_TRUE(SamplingOptions{}.check().ok());
}

}  // namespace
}  // namespace sapwood
