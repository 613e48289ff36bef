#include "kernels/kv_layout.h"

namespace sapwood {

std::optional<KvFormat> parse_kv_format(std::string_view name) {
  for (const KvFormat format : {KvFormat::kFloat16, KvFormat::kInt8}) {
    if (kv_format_name(format) == name) return format;
  }
  return std::nullopt;
}

std::string_view kv_format_name(KvFormat format) {
  return format == KvFormat::kInt8 ? "int8" : "float16";
}

}  // namespace sapwood
