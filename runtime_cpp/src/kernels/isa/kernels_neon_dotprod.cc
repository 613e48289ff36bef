#define SAPWOOD_ISA neon_dotprod
#include "kernels/isa/lanes_neon_dotprod.h"
#include "kernels/isa/table_inl.h"
#include "kernels/isa/tables.h"

namespace sapwood {
const KernelTable kNeonDotprodKernels = neon_dotprod::make_table("neon-dotprod");
}  // namespace sapwood
