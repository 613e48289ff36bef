// Devices, their timelines, and double buffering over two of them.

#include "bindings.h"

#if defined(SAPWOOD_WITH_VULKAN)
#include "vulkan/double_buffer.h"
#include "vulkan/vulkan_timeline.h"
#endif

namespace sapwood::python {

#if defined(SAPWOOD_WITH_VULKAN)

void bind_vulkan(nb::module_& module) {
  using vulkan::Device;
  using vulkan::DoubleBufferCost;
  using vulkan::VulkanTimeline;
  module.def(
      "vulkan_device_names", [] { return value_or_raise(Device::names()); },
      "Of this machine's devices, by index; refused where there is no Vulkan at all.");
  nb::class_<Device>(module, "VulkanDevice", "A Vulkan device for computing, with one queue.")
      .def_static(
          "open", [](int index) { return value_or_raise(Device::create(index)); }, nb::arg("index"),
          "A logical device of its own; refused with what it lacks.")
      .def_prop_ro("name", &Device::name);
  nb::class_<VulkanTimeline, Timeline>(module, "VulkanTimeline",
                                       "A device's timeline semaphore, seen from the processor.")
      .def_static(
          "create",
          [](std::shared_ptr<Device> device, uint64_t value) {
            return value_or_raise(VulkanTimeline::create(std::move(device), value));
          },
          nb::arg("device"), nb::arg("value") = 0);
  nb::class_<DoubleBufferCost>(module, "DoubleBufferCost", "Of vulkan_double_buffer.")
      .def_ro("step_ms", &DoubleBufferCost::step_ms)
      .def_ro("draft_ms", &DoubleBufferCost::draft_ms,
              "A pass of the draft while the target waited for it.")
      .def_ro("draft_ms_waited", &DoubleBufferCost::draft_ms_waited, "A step, for the draft.")
      .def_ro("kept", &DoubleBufferCost::kept, "Looks ahead.")
      .def_ro("discarded", &DoubleBufferCost::discarded)
      .def_ro("right", &DoubleBufferCost::right, "The state, and every look that was kept.")
      .def("hidden_draft_share", &DoubleBufferCost::hidden_draft_share, nb::arg("steps"));
  module.def(
      "vulkan_double_buffer",
      [](const std::shared_ptr<Device>& draft, const std::shared_ptr<Device>& target, int steps,
         uint32_t target_size, uint32_t draft_size, int surprise_every, bool ahead) {
        return value_or_raise(vulkan::double_buffer_cost(draft, target,
                                                         {.steps = steps,
                                                          .target_size = target_size,
                                                          .draft_size = draft_size,
                                                          .surprise_every = surprise_every,
                                                          .ahead = ahead}));
      },
      nb::arg("draft"), nb::arg("target"), nb::kw_only(), nb::arg("steps"), nb::arg("target_size"),
      nb::arg("draft_size"), nb::arg("surprise_every") = 3, nb::arg("ahead") = true,
      nb::call_guard<nb::gil_scoped_release>(),
      "Steps in which one device drafts what another one decides, ordered by their timelines. A "
      "pass adds so many numbers, a multiple of 256; the draft expects the outcome of all steps "
      "but every `surprise_every`-th. Without `ahead` it waits for the decision.");
}

#else

void bind_vulkan(nb::module_& module) {
  module.def("vulkan_device_names", []() -> std::vector<std::string> {
    throw StatusError(Status(Code::kUnsupported,
                             "this build is without Vulkan: it takes the headers of libvulkan-dev "
                             "and libvulkan-volk-dev"));
  });
}

#endif

}  // namespace sapwood::python
