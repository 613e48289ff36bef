#define SAPWOOD_VECTOR_FLOATS 8
#include "verify/isa/vector_loops_inl.h"

namespace sapwood {
const VectorLoops kAvx2Loops = kLoops;
}  // namespace sapwood
