// One shader over some buffers, recorded once and submitted as often as wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "vulkan/pool_memory.h"
#include "vulkan/vulkan_timeline.h"

namespace sapwood::vulkan {

class ComputePass {
 public:
  // `code`: SPIR-V whose entry point is main. Buffer i is binding i of set 0; `constants` are its
  // push constants. `buffers` outlive the pass.
  static Result<std::unique_ptr<ComputePass>> record(std::shared_ptr<Device> device,
                                                     std::span<const uint32_t> code,
                                                     std::span<const Buffer* const> buffers,
                                                     std::span<const std::byte> constants,
                                                     uint32_t workgroups);
  ~ComputePass();
  ComputePass(const ComputePass&) = delete;
  ComputePass& operator=(const ComputePass&) = delete;

  // Runs once `after` is at `after_value`, sees what the processor wrote before it signalled that,
  // and signals `done` with `done_value`: whoever waits for it sees what the shader wrote. Returns
  // at once; not again before it is done.
  Status submit(const VulkanTimeline& after, uint64_t after_value, const VulkanTimeline& done,
                uint64_t done_value);

 private:
  explicit ComputePass(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Status make_pipeline(std::span<const uint32_t> code, uint32_t buffers, uint32_t constant_bytes);
  Status make_set(std::span<const Buffer* const> buffers);
  Status record_commands(std::span<const std::byte> constants, uint32_t workgroups);

  std::shared_ptr<Device> device_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkShaderModule shader_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDescriptorPool set_pool_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

// sums = left + right: `sums`, `left` and `right` as many float32.
std::span<const uint32_t> add_shader();

}  // namespace sapwood::vulkan
