// The bundle's mapped weights as ExecuTorch's source of external constants: a .pte of the fused
// flavour holds names only, those of the manifest with "_" behind them (export/sapwood_export/
// executorch/decoder.py says why).
#pragma once

#include <executorch/runtime/core/named_data_map.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/bundle.h"

namespace sapwood::executorch {

class WeightsMap final : public ::executorch::runtime::NamedDataMap {
 public:
  explicit WeightsMap(std::shared_ptr<const Bundle> bundle);

  ::executorch::runtime::Result<const ::executorch::runtime::TensorLayout> get_tensor_layout(
      std::string_view key) const override;
  // Points into the mapped file, which the bundle keeps.
  ::executorch::runtime::Result<::executorch::runtime::FreeableBuffer> get_data(
      std::string_view key) const override;
  ::executorch::runtime::Error load_data_into(std::string_view key, void* buffer,
                                              size_t size) const override;
  ::executorch::runtime::Result<uint32_t> get_num_keys() const override;
  ::executorch::runtime::Result<const char*> get_key(uint32_t index) const override;

 private:
  // How the graph sees a tensor: packed bytes or floats, in one row.
  struct Constant {
    const TensorEntry* entry;
    std::array<int32_t, 1> sizes;
  };

  const std::shared_ptr<const Bundle> bundle_;
  std::map<std::string, Constant, std::less<>> constants_;
  std::vector<const char*> keys_;  // of constants_
};

}  // namespace sapwood::executorch
