#include "operators/executorch/weights_map.h"

#include <cstring>
#include <utility>

namespace sapwood::executorch {

using ::executorch::aten::ScalarType;
using ::executorch::runtime::Error;
using ::executorch::runtime::FreeableBuffer;
using ::executorch::runtime::Result;
using ::executorch::runtime::TensorLayout;

namespace {

constexpr std::array<uint8_t, 1> kInOrder = {0};

}  // namespace

WeightsMap::WeightsMap(std::shared_ptr<const Bundle> bundle) : bundle_(std::move(bundle)) {
  for (const auto& [name, entry] : bundle_->manifest().tensors) {
    const uint64_t count = entry.packed ? entry.bytes : entry.bytes / sizeof(float);
    constants_[name + "_"] = {&entry, {static_cast<int32_t>(count)}};
  }
  for (const auto& [key, constant] : constants_) keys_.push_back(key.c_str());
}

Result<const TensorLayout> WeightsMap::get_tensor_layout(std::string_view key) const {
  const auto found = constants_.find(key);
  if (found == constants_.end()) return Error::NotFound;
  const auto& [entry, sizes] = found->second;
  return TensorLayout::create({sizes.data(), sizes.size()}, {kInOrder.data(), kInOrder.size()},
                              entry->packed ? ScalarType::Byte : ScalarType::Float);
}

Result<FreeableBuffer> WeightsMap::get_data(std::string_view key) const {
  const auto found = constants_.find(key);
  if (found == constants_.end()) return Error::NotFound;
  const TensorEntry& entry = *found->second.entry;
  return FreeableBuffer(bundle_->weights().data() + entry.offset, entry.bytes, nullptr);
}

Error WeightsMap::load_data_into(std::string_view key, void* buffer, size_t size) const {
  const auto found = constants_.find(key);
  if (found == constants_.end()) return Error::NotFound;
  const TensorEntry& entry = *found->second.entry;
  if (size > entry.bytes) return Error::InvalidArgument;
  std::memcpy(buffer, bundle_->weights().data() + entry.offset, size);
  return Error::Ok;
}

Result<uint32_t> WeightsMap::get_num_keys() const { return static_cast<uint32_t>(keys_.size()); }

Result<const char*> WeightsMap::get_key(uint32_t index) const {
  if (index >= keys_.size()) return Error::InvalidArgument;
  return keys_[index];
}

}  // namespace sapwood::executorch
