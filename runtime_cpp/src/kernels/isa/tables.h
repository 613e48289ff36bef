// The tables that exist in this build; dispatch.cc decides which of them this machine can run.
#pragma once

#include "kernels/kernels.h"

namespace sapwood {

extern const KernelTable kScalarKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx2VnniKernels;
extern const KernelTable kAvx512VnniKernels;
#elif defined(__aarch64__)
extern const KernelTable kNeonKernels;
extern const KernelTable kNeonDotprodKernels;
extern const KernelTable kNeonI8mmKernels;
#endif

}  // namespace sapwood
