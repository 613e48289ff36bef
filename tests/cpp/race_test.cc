// Drawing by a race, and what a draft can know of it.
#include "verify/race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "draft/foresight.h"

namespace sapwood {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> log_law(const std::vector<double>& weights) {
  double whole = 0;
  for (const double weight : weights) whole += weight;
  std::vector<float> log_p;
  for (const double weight : weights) log_p.push_back(static_cast<float>(std::log(weight / whole)));
  return log_p;
}

std::vector<double> random_weights(int n, std::mt19937& random, double spread) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> weights(n);
  for (double& weight : weights) weight = std::exp(normal(random));
  return weights;
}

TEST(Race, FollowsTheLawOfLikelyAndUnlikelyTokensAlike) {
  // Two likely tokens; nine that are too unlikely to run by themselves, together a tenth.
  std::vector<double> weights(300, 0);
  weights[7] = 0.6;
  weights[200] = 0.3;
  for (int i = 100; i < 109; ++i) weights[i] = 0.1 / 9;
  std::vector<double> tail = weights;
  for (int i = 10; i < 160; ++i) tail[i] = 0.1 / 150;  // below exp(-6) of the likeliest
  for (const std::vector<double>& law : {weights, tail}) {
    double whole = 0;
    for (const double weight : law) whole += weight;
    const std::vector<float> log_p = log_law(law);
    constexpr int kDraws = 60000;
    std::vector<int> seen(law.size(), 0);
    for (int i = 0; i < kDraws; ++i) ++seen[race({{}, log_p}, 5, i)];
    double chi_square = 0;
    int cells = 0;
    for (size_t i = 0; i < law.size(); ++i) {
      const double expected = kDraws * law[i] / whole;
      if (expected == 0) {
        ASSERT_EQ(seen[i], 0);
        continue;
      }
      chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
      ++cells;
    }
    // Mean and deviation of a chi-square with so many degrees of freedom; numbers are fixed.
    EXPECT_LT(chi_square, cells - 1 + 4 * std::sqrt(2.0 * (cells - 1)));
  }
}

TEST(Race, ATokenOfProbabilityZeroNeverComesOut) {
  const std::vector<float> log_p = {-kInfinity, -90.f,          std::log(0.5f),
                                    -kInfinity, std::log(0.5f), -kInfinity};
  std::vector<float> wide(49152, -kInfinity);
  wide[30000] = 0.f;
  for (uint64_t position = 0; position < 2000; ++position) {
    const int32_t token = race({{}, log_p}, 3, position);
    ASSERT_TRUE(token == 2 || token == 4);
    ASSERT_EQ(race({{}, wide}, 3, position), 30000);
  }
}

TEST(Race, ALawOfFewTokensIsRunLikeTheSameOneOverAll) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    const std::vector<float> few = log_law(random_weights(12, random, 2));
    std::vector<int32_t> tokens;
    std::vector<float> all(900, -kInfinity);
    for (int i = 0; i < 12; ++i) {
      tokens.push_back(i * 70 + static_cast<int>(random() % 60));
      all[tokens.back()] = few[i];
    }
    ASSERT_EQ(race({tokens, few}, round, 9), race({{}, all}, round, 9));
  }
}

TEST(Race, LawsThatAreCloseHaveTheSameWinnerAsOftenAsTheBoundSays) {
  std::mt19937 random(8);
  for (const double spread : {0.1, 0.5, 1.5}) {
    const std::vector<double> p = random_weights(40, random, 1.5);
    const std::vector<double> noise = random_weights(40, random, spread);
    std::vector<double> q(40);
    for (int i = 0; i < 40; ++i) q[i] = p[i] * noise[i];
    const std::vector<float> log_p = log_law(p);
    const std::vector<float> log_q = log_law(q);
    double distance = 0;
    for (int i = 0; i < 40; ++i) distance += std::abs(std::exp(log_p[i]) - std::exp(log_q[i])) / 2;
    constexpr int kDraws = 20000;
    int same = 0;
    for (int i = 0; i < kDraws; ++i) {
      same += race({{}, log_p}, 1, i) == race({{}, log_q}, 1, i) ? 1 : 0;
    }
    EXPECT_GT(static_cast<double>(same) / kDraws, (1 - distance) / (1 + distance) - 0.02);
  }
}

struct Guess {
  int32_t token;
  double probability;
};

std::vector<Guess> likeliest(const std::vector<float>& log_p, int count) {
  std::vector<Guess> guesses;
  for (size_t i = 0; i < log_p.size(); ++i) {
    guesses.push_back({static_cast<int32_t>(i), std::exp(static_cast<double>(log_p[i]))});
  }
  std::sort(guesses.begin(), guesses.end(),
            [](const Guess& a, const Guess& b) { return a.probability > b.probability; });
  guesses.resize(count);
  return guesses;
}

TEST(Foresight, TheGuessItFavoursIsDrawnFarMoreOftenThanTheLikeliestToken) {
  std::mt19937 random(15);
  int by_rank = 0;
  int by_draw = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<float> log_p = log_law(random_weights(50, random, 2));
    std::vector<Guess> guesses = likeliest(log_p, 8);
    const int32_t drawn = race({{}, log_p}, 77, i);
    by_rank += guesses[0].token == drawn ? 1 : 0;
    Foresight foresight;
    foresight.start({.temperature = 1.f, .seed = 77});
    foresight.weigh<Guess>(i, guesses);
    const auto best = std::max_element(
        guesses.begin(), guesses.end(),
        [](const Guess& a, const Guess& b) { return a.probability < b.probability; });
    by_draw += best->token == drawn ? 1 : 0;
    double all = 0;
    for (const Guess& guess : guesses) all += guess.probability;
    ASSERT_LE(all, 1 + 1e-9);
  }
  EXPECT_GT(by_draw, 0.75 * kDraws);
  EXPECT_LT(by_rank, 0.5 * kDraws);
}

TEST(Foresight, GreedyProbabilitiesStayAsTheyAre) {
  std::vector<Guess> guesses = {{3, 0.5}, {9, 0.2}};
  Foresight foresight;
  foresight.start({.temperature = 0.f, .seed = 1});
  foresight.heat<Guess>(guesses);
  foresight.weigh<Guess>(4, guesses);
  EXPECT_EQ(guesses[0].probability, 0.5);
  EXPECT_EQ(guesses[1].probability, 0.2);
}

TEST(Foresight, HeatingAllTokensIsTheSoftmaxAtThatTemperature) {
  std::mt19937 random(2);
  const std::vector<double> weights = random_weights(8, random, 1);
  for (const float temperature : {0.5f, 0.8f, 1.f, 1.7f}) {
    std::vector<Guess> guesses = likeliest(log_law(weights), 8);
    Foresight foresight;
    foresight.start({.temperature = temperature, .seed = 1});
    foresight.heat<Guess>(guesses);
    double whole = 0;
    for (const double weight : weights) whole += std::pow(weight, 1 / temperature);
    for (const Guess& guess : guesses) {
      EXPECT_NEAR(guess.probability, std::pow(weights[guess.token], 1 / temperature) / whole, 1e-3);
    }
  }
}

}  // namespace
}  // namespace sapwood
