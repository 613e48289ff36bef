#define SAPWOOD_ISA avx2vnni
#define SAPWOOD_AVX_VNNI
#include "kernels/isa/lanes_avx2.h"
#include "kernels/isa/table_inl.h"
#include "kernels/isa/tables.h"

namespace sapwood {
const KernelTable kAvx2VnniKernels = avx2vnni::make_table("avx2-vnni");
}  // namespace sapwood
