#define SAPWOOD_ISA avx512vnni
#include "kernels/isa/lanes_avx512vnni.h"
#include "kernels/isa/table_inl.h"
#include "kernels/isa/tables.h"

namespace sapwood {
const KernelTable kAvx512VnniKernels = avx512vnni::make_table("avx512-vnni");
}  // namespace sapwood
