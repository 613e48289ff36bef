#define SAPWOOD_VECTOR_FLOATS 16
#include "verify/isa/vector_loops_inl.h"

namespace sapwood {
const VectorLoops kAvx512Loops = kLoops;
}  // namespace sapwood
