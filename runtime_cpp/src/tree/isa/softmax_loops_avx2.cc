#include "tree/isa/softmax_loops_inl.h"

namespace sapwood {
const SoftmaxLoops kAvx2SoftmaxLoops = kLoops;
}  // namespace sapwood
