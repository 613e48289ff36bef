#include "tree/isa/softmax_loops_inl.h"

namespace sapwood {
const SoftmaxLoops kScalarSoftmaxLoops = kLoops;
}  // namespace sapwood
