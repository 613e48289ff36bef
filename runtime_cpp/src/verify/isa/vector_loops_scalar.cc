#define SAPWOOD_VECTOR_FLOATS 4
#include "verify/isa/vector_loops_inl.h"

namespace sapwood {
const VectorLoops kScalarLoops = kLoops;
}  // namespace sapwood
