#define SAPWOOD_ISA neon_i8mm
#include "kernels/isa/lanes_neon_i8mm.h"
#include "kernels/isa/table_inl.h"
#include "kernels/isa/tables.h"

namespace sapwood {
const KernelTable kNeonI8mmKernels = neon_i8mm::make_table("neon-i8mm");
}  // namespace sapwood
