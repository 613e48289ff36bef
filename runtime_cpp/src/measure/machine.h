// What this machine allows: the limits that kernels are measured against.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_team.h"

namespace sapwood {

// Bytes a second that the team reads from `memory`, which should be much larger than the caches.
// One pass; take the best of several.
double read_bandwidth(std::span<const uint8_t> memory, ThreadTeam& team);

// int8 multiply-accumulates a second between registers, in the best instruction of the kernels in
// use, over all members of the team. About ten milliseconds.
double int8_peak(ThreadTeam& team);

// Seconds that a barrier takes when all members come to it at once: the mean of ten thousand.
double barrier_seconds(ThreadTeam& team);

}  // namespace sapwood
