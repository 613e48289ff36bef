// What tests of Vulkan share: every device of this machine that the runtime can use. On a build
// machine these are Mesa's lavapipe and SwiftShader, which compute on the processor.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vulkan/compute_pass.h"

namespace sapwood::vulkan {

inline Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

class VulkanDevices : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "drivers are not instrumented: their threads and leaks would be reported";
#endif
    add_swiftshader();
    const Result<std::vector<std::string>> names = Device::names();
    if (!names.ok()) GTEST_SKIP() << names.status().message();
    for (size_t i = 0; i < names.value().size(); ++i) {
      Result<std::shared_ptr<Device>> device = Device::create(static_cast<int>(i));
      if (!device.ok()) {
        std::printf("left out: %s\n", device.status().message().c_str());
        continue;
      }
      EXPECT_EQ(device.value()->name(), names.value()[i]);
      devices_.push_back(std::move(device).value());
    }
    if (devices_.empty()) GTEST_SKIP() << "no Vulkan device that the runtime can use";
  }

  // Beside the drivers that the machine offers to everyone: the second one that a build machine can
  // have, which Debian ships inside its browser. Before the first instance is made.
  static void add_swiftshader() {
    static const char* const kManifest = "/usr/lib/chromium/vk_swiftshader_icd.json";
    if (std::getenv("VK_ICD_FILENAMES") != nullptr || std::getenv("VK_DRIVER_FILES") != nullptr) {
      return;
    }
    if (access(kManifest, R_OK) == 0) {
      setenv("VK_ADD_DRIVER_FILES", kManifest, 0);
    } else {
      std::printf("without SwiftShader: no %s (Debian: chromium-common)\n", kManifest);
    }
  }

  std::vector<std::shared_ptr<Device>> devices_;
};

inline std::span<float> floats(const TensorHandle& handle) {
  return {reinterpret_cast<float*>(handle.data()), handle.bytes() / sizeof(float)};
}

}  // namespace sapwood::vulkan
