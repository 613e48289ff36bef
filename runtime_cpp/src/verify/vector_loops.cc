#include "verify/isa/vector_loops.h"

#include "kernels/kernels.h"

namespace sapwood {

const VectorLoops& vector_loops() {
#if defined(__x86_64__)
  const std::string_view name = kernels().name;
  if (name.starts_with("avx512")) return kAvx512Loops;
  if (name.starts_with("avx2")) return kAvx2Loops;
#endif
  return kScalarLoops;
}

}  // namespace sapwood
