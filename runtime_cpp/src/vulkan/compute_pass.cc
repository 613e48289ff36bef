#include "vulkan/compute_pass.h"

#include <string>
#include <vector>

namespace sapwood::vulkan {
namespace {

constexpr uint32_t kAddShader[] = {
#include "vulkan/shaders/add.spv.inc"
};

Status check(const char* what, VkResult result) {
  return result == VK_SUCCESS ? Status::okay() : error_of(what, result);
}

}  // namespace

std::span<const uint32_t> add_shader() { return kAddShader; }

Result<std::unique_ptr<ComputePass>> ComputePass::record(std::shared_ptr<Device> device,
                                                         std::span<const uint32_t> code,
                                                         std::span<const Buffer* const> buffers,
                                                         std::span<const std::byte> constants,
                                                         uint32_t workgroups) {
  const VkPhysicalDeviceLimits& limits = device->limits();
  if (workgroups > limits.maxComputeWorkGroupCount[0] ||
      constants.size() > limits.maxPushConstantsSize ||
      buffers.size() > limits.maxPerStageDescriptorStorageBuffers) {
    return Status(Code::kUnsupported, device->name() + ": " + std::to_string(workgroups) +
                                          " workgroups over " + std::to_string(buffers.size()) +
                                          " buffers are more than it takes");
  }
  std::unique_ptr<ComputePass> pass(new ComputePass(std::move(device)));
  SAPWOOD_TRY(pass->make_pipeline(code, static_cast<uint32_t>(buffers.size()),
                                  static_cast<uint32_t>(constants.size())));
  SAPWOOD_TRY(pass->make_set(buffers));
  SAPWOOD_TRY(pass->record_commands(constants, workgroups));
  return pass;
}

Status ComputePass::make_pipeline(std::span<const uint32_t> code, uint32_t buffers,
                                  uint32_t constant_bytes) {
  const VolkDeviceTable& vk = device_->functions();
  std::vector<VkDescriptorSetLayoutBinding> bindings(buffers);
  for (uint32_t i = 0; i < buffers; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  auto set = structure<VkDescriptorSetLayoutCreateInfo>(
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  set.bindingCount = buffers;
  set.pBindings = bindings.data();
  SAPWOOD_TRY(
      check("a descriptor set layout",
            vk.vkCreateDescriptorSetLayout(device_->handle(), &set, nullptr, &set_layout_)));
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, constant_bytes};
  auto layout =
      structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = constant_bytes > 0 ? 1 : 0;
  layout.pPushConstantRanges = &range;
  SAPWOOD_TRY(check("a pipeline layout",
                    vk.vkCreatePipelineLayout(device_->handle(), &layout, nullptr, &layout_)));
  auto shader = structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  shader.codeSize = code.size_bytes();
  shader.pCode = code.data();
  SAPWOOD_TRY(
      check("a shader", vk.vkCreateShaderModule(device_->handle(), &shader, nullptr, &shader_)));
  auto pipeline =
      structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  pipeline.stage = structure<VkPipelineShaderStageCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline.stage.module = shader_;
  pipeline.stage.pName = "main";
  pipeline.layout = layout_;
  return check("a compute pipeline",
               vk.vkCreateComputePipelines(device_->handle(), VK_NULL_HANDLE, 1, &pipeline, nullptr,
                                           &pipeline_));
}

Status ComputePass::make_set(std::span<const Buffer* const> buffers) {
  const VolkDeviceTable& vk = device_->functions();
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     static_cast<uint32_t>(buffers.size())};
  auto pool = structure<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  pool.maxSets = 1;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  SAPWOOD_TRY(check("a descriptor pool",
                    vk.vkCreateDescriptorPool(device_->handle(), &pool, nullptr, &set_pool_)));
  auto set = structure<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  set.descriptorPool = set_pool_;
  set.descriptorSetCount = 1;
  set.pSetLayouts = &set_layout_;
  SAPWOOD_TRY(
      check("a descriptor set", vk.vkAllocateDescriptorSets(device_->handle(), &set, &set_)));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const VkDescriptorBufferInfo whole = {buffers[i]->handle(), 0, VK_WHOLE_SIZE};
    auto write = structure<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    write.dstSet = set_;
    write.dstBinding = static_cast<uint32_t>(i);
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &whole;
    vk.vkUpdateDescriptorSets(device_->handle(), 1, &write, 0, nullptr);
  }
  return Status::okay();
}

Status ComputePass::record_commands(std::span<const std::byte> constants, uint32_t workgroups) {
  const VolkDeviceTable& vk = device_->functions();
  auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = device_->queue_family();
  SAPWOOD_TRY(check("a command pool",
                    vk.vkCreateCommandPool(device_->handle(), &pool, nullptr, &command_pool_)));
  auto info =
      structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = command_pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  SAPWOOD_TRY(
      check("a command buffer", vk.vkAllocateCommandBuffers(device_->handle(), &info, &commands_)));
  const auto begin =
      structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  SAPWOOD_TRY(check("recording", vk.vkBeginCommandBuffer(commands_, &begin)));
  vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  vk.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0,
                             nullptr);
  if (!constants.empty()) {
    vk.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          static_cast<uint32_t>(constants.size()), constants.data());
  }
  vk.vkCmdDispatch(commands_, workgroups, 1, 1);
  // A semaphore orders devices; for the processor to read, the writes must be made visible to it.
  auto to_host = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  to_host.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                          VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr, 0, nullptr);
  return check("recording", vk.vkEndCommandBuffer(commands_));
}

Status ComputePass::submit(const VulkanTimeline& after, uint64_t after_value,
                           const VulkanTimeline& done, uint64_t done_value) {
  auto values =
      structure<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  values.waitSemaphoreValueCount = 1;
  values.pWaitSemaphoreValues = &after_value;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &done_value;
  const VkSemaphore wait = after.semaphore(), signal = done.semaphore();
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  auto info = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO, &values);
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &wait;
  info.pWaitDstStageMask = &stage;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &signal;
  return device_->submit(info);
}

ComputePass::~ComputePass() {
  const VolkDeviceTable& vk = device_->functions();
  vk.vkDeviceWaitIdle(device_->handle());  // a pass may be on its way
  vk.vkDestroyCommandPool(device_->handle(), command_pool_, nullptr);
  vk.vkDestroyDescriptorPool(device_->handle(), set_pool_, nullptr);
  vk.vkDestroyPipeline(device_->handle(), pipeline_, nullptr);
  vk.vkDestroyShaderModule(device_->handle(), shader_, nullptr);
  vk.vkDestroyPipelineLayout(device_->handle(), layout_, nullptr);
  vk.vkDestroyDescriptorSetLayout(device_->handle(), set_layout_, nullptr);
}

}  // namespace sapwood::vulkan
