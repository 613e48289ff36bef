// Random numbers that depend on nothing but where they are used.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a keyed
// bijection of a counter, so the uniform for output position i is a function of (seed, stream, i).
// Every decoding mode therefore draws the same number for the same emitted token, however many
// tokens it emits a step, which makes sampled text equal across modes.
#pragma once

#include <array>
#include <cstdint>

namespace sapwood {

// Independent sequences under one seed.
enum class RandomStream : uint32_t { kTarget = 0, kDraft = 1, kAcceptance = 2, kRace = 3 };

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// In [0, 1), a multiple of 2^-53. Items have a number each at the same index of a stream.
double counter_uniform(uint64_t seed, uint64_t index, RandomStream stream = RandomStream::kTarget,
                       uint32_t item = 0);

}  // namespace sapwood
