#define SAPWOOD_ISA scalar
#include "kernels/isa/lanes_scalar.h"
#include "kernels/isa/table_inl.h"
#include "kernels/isa/tables.h"

namespace sapwood {
const KernelTable kScalarKernels = scalar::make_table("scalar");
}  // namespace sapwood
