#include "tree/isa/softmax_loops_inl.h"

namespace sapwood {
const SoftmaxLoops kAvx512SoftmaxLoops = kLoops;
}  // namespace sapwood
