#include "verify/race.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/exponential.h"
#include "verify/isa/vector_loops.h"
#include "verify/random.h"

namespace sapwood {
namespace {

constexpr int kBlock = 128;  // entries passed over together when none of them is likely enough
constexpr uint32_t kOthers = 0xFFFFFFFF;  // no token has this number

double exponential(uint64_t seed, uint64_t position, uint32_t item) {
  // Half a step up: the logarithm of zero must not be asked for.
  return -std::log(counter_uniform(seed, position, RandomStream::kRace, item) + 0x1p-54);
}

}  // namespace

double arrival_time(uint64_t seed, uint64_t position, int32_t token) {
  return exponential(seed, position, static_cast<uint32_t>(token));
}

int32_t race(const TokenLaw& law, uint64_t seed, uint64_t position) {
  const VectorLoops& loops = vector_loops();
  const int n = law.size();
  const float* log_p = law.log_p.data();
  bool bad = false;  // the law has looked
  const float likeliest = loops.largest(log_p, n, &bad);
  const float lowest = likeliest - kRacing;
  double racing = 0;  // mass
  double first = std::numeric_limits<double>::infinity();
  int winner = 0;
  for (int begin = 0; begin < n; begin += kBlock) {
    const int size = std::min(kBlock, n - begin);
    if (!(loops.largest(log_p + begin, size, &bad) >= lowest)) continue;
    for (int i = begin; i < begin + size; ++i) {
      if (!(log_p[i] >= lowest)) continue;
      const double weight = static_cast<double>(exp_nonpositive(log_p[i]));
      racing += weight;
      const double time = arrival_time(seed, position, law.token(i)) / weight;
      if (time < first) {
        first = time;
        winner = i;
      }
    }
  }
  const double others = loops.mass(log_p, n) - racing;
  if (!(others > 0) || !(exponential(seed, position, kOthers) / others < first)) {
    return law.token(winner);
  }
  const double target = others * counter_uniform(seed, position);
  double cumulative = 0;
  int last = winner;  // if rounding left a mass where no token is
  for (int i = 0; i < n; ++i) {
    if (log_p[i] >= lowest) continue;
    const double weight = static_cast<double>(exp_nonpositive(log_p[i]));
    if (!(weight > 0)) continue;
    last = i;
    cumulative += weight;
    if (cumulative > target) break;
  }
  return law.token(last);
}

}  // namespace sapwood
