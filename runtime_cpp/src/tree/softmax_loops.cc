#include "tree/isa/softmax_loops.h"

#include <string_view>

#include "kernels/kernels.h"

namespace sapwood {

const SoftmaxLoops& softmax_loops() {
#if defined(__x86_64__)
  const std::string_view name = kernels().name;
  if (name.starts_with("avx512")) return kAvx512SoftmaxLoops;
  if (name.starts_with("avx2")) return kAvx2SoftmaxLoops;
#endif
  return kScalarSoftmaxLoops;
}

}  // namespace sapwood
