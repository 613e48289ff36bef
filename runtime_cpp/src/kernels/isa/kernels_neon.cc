#define SAPWOOD_ISA neon_plain
#include "kernels/isa/lanes_neon_plain.h"
#include "kernels/isa/table_inl.h"
#include "kernels/isa/tables.h"

namespace sapwood {
const KernelTable kNeonKernels = neon_plain::make_table("neon");
}  // namespace sapwood
