// Drawing a token by a race: token x arrives after an exponentially distributed time of rate p(x),
// and the first one to arrive is a draw from p (the Gumbel-max trick without its logarithms).
//
// What it is for: the times at rate one, E(x), depend on seed, position and token, not on p.
// Whoever has a guess q of p can run the race with it, and finds the same winner with probability
// at least (1 - d) / (1 + d), d being the total variation between p and q (Daliri, Musco and
// Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024). So a
// draft may know the draws of a position before the target has seen it. That touches no law: what
// comes out is a function of p and the seed, the same with every draft and with none.
#pragma once

#include <cstdint>

#include "verify/sampling.h"

namespace sapwood {

// What decides the draws of a text, beside the target's law.
struct TargetDraws {
  float temperature = 0.f;  // 0: greedy, nothing is drawn
  uint64_t seed = 0;
};

// E(x): exponentially distributed with mean 1, above 0.
double arrival_time(uint64_t seed, uint64_t position, int32_t token);

// The first token to arrive. Only those within kRacing nats of the likeliest one run by themselves;
// the others run as one, and if they win, one of them is found by inverting their cumulative mass:
// the same law, and few logarithms. A token of probability zero never comes out.
inline constexpr float kRacing = 6.f;
int32_t race(const TokenLaw& law, uint64_t seed, uint64_t position);

}  // namespace sapwood
