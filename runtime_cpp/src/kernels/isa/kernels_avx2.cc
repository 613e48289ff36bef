#define SAPWOOD_ISA avx2
#include "kernels/isa/lanes_avx2.h"
#include "kernels/isa/table_inl.h"
#include "kernels/isa/tables.h"

namespace sapwood {
const KernelTable kAvx2Kernels = avx2::make_table("avx2");
}  // namespace sapwood
