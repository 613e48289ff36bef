// Which kernels this machine can run, and which one is used.
#include <cmath>
#include <cstdlib>
#include <vector>

#include "kernels/attention_limits.h"
#include "kernels/isa/tables.h"
#include "kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace sapwood {
namespace {

#if defined(__x86_64__)
// Two features that __builtin_cpu_supports does not know by name in every compiler. Whether the
// system saves their registers is what it says of AVX2.
bool has_half_floats() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;  // F16C
}
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
}
#endif

std::vector<const KernelTable*> find_runnable() {
  std::vector<const KernelTable*> tables = {&kScalarKernels};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_half_floats();
  if (avx2) tables.push_back(&kAvx2Kernels);
  if (avx2 && has_avx_vnni()) tables.push_back(&kAvx2VnniKernels);
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni")) {
    tables.push_back(&kAvx512VnniKernels);
  }
#elif defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kDotProduct = 1ul << 20;     // HWCAP_ASIMDDP
  constexpr unsigned long kMatrixProduct = 1ul << 13;  // HWCAP2_I8MM
  const bool dot_product = (getauxval(AT_HWCAP) & kDotProduct) != 0;
  tables.push_back(&kNeonKernels);  // every arm64 processor has NEON
  if (dot_product) tables.push_back(&kNeonDotprodKernels);
  if (dot_product && (getauxval(AT_HWCAP2) & kMatrixProduct) != 0) {
    tables.push_back(&kNeonI8mmKernels);
  }
#endif
  return tables;
}

const std::vector<const KernelTable*>& runnable() {
  static const std::vector<const KernelTable*> tables = find_runnable();
  return tables;
}

const KernelTable* find(std::string_view name) {
  for (const KernelTable* table : runnable()) {
    if (table->name == name) return table;
  }
  return nullptr;
}

const KernelTable*& chosen() {
  static const KernelTable* table = [] {
    const char* name = std::getenv("SAPWOOD_KERNELS");
    const KernelTable* named = name != nullptr ? find(name) : nullptr;
    return named != nullptr ? named : runnable().back();
  }();
  return table;
}

}  // namespace

std::span<const KernelTable* const> runnable_kernels() { return runnable(); }

const KernelTable& kernels() { return *chosen(); }

bool set_kernels(std::string_view name) {
  const KernelTable* table = find(name);
  if (table != nullptr) chosen() = table;
  return table != nullptr;
}

size_t attention_scratch_floats(const AttentionShape& shape, const RowBatch& batch, int rows) {
  int longest = 0;
  for (int row = 0; row < batch.rows(); ++row) {
    longest = std::max(longest, batch.path_end[row] - batch.path_begin[row]);
  }
  const size_t vectors =
      static_cast<size_t>(std::min(rows, kAttentionRows)) * (shape.heads / shape.kv_heads);
  return vectors *
         attention_vector_floats(shape.head_dim, static_cast<size_t>(batch.context()) + longest);
}

void rotary_table(std::span<const int32_t> positions, std::span<const float> inverse_frequencies,
                  float* out) {
  for (const int32_t position : positions) {
    const size_t half = inverse_frequencies.size();
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * inverse_frequencies[i];
      out[i] = static_cast<float>(std::cos(angle));
      out[half + i] = static_cast<float>(std::sin(angle));
    }
    out += 2 * half;
  }
}

}  // namespace sapwood
