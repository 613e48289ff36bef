// What the files of the Python module share: errors, bundles, arrays, and the list of parts.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/kv_layout.h"
#include "model/bundle.h"

namespace sapwood::python {

namespace nb = nanobind;

// Carries a Status to Python, where it becomes sapwood.errors.SapwoodError (module.cc).
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.message().c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

inline void raise_unless_ok(const Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <typename T>
T value_or_raise(Result<T>&& result) {
  if (!result.ok()) throw StatusError(result.status());
  return std::move(result).value();
}

[[noreturn]] inline void raise_invalid(std::string message) {
  throw StatusError(Status(Code::kInvalidArgument, std::move(message)));
}

inline std::shared_ptr<const Bundle> open_bundle(const std::string& folder, bool verify_checksums) {
  return std::make_shared<const Bundle>(
      value_or_raise(Bundle::open(folder, {.verify_checksums = verify_checksums})));
}

// "float16" or "int8".
KvFormat kv_format_or_raise(std::string_view name);

// Arrays as Python hands them in (C order, converted and copied if need be) and takes them back.
using FloatVector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatMatrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ByteVector = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T, size_t Dimensions>
using NumpyArray = nb::ndarray<nb::numpy, T, nb::ndim<Dimensions>, nb::c_contig>;

// A fresh numpy array of this shape, filled with zeros, that owns its memory.
template <typename T, typename... Sizes>
NumpyArray<T, sizeof...(Sizes)> new_array(Sizes... sizes) {
  size_t elements = 1;
  ((elements *= static_cast<size_t>(sizes)), ...);
  T* data = new T[elements]();
  nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return NumpyArray<T, sizeof...(Sizes)>(data, {static_cast<size_t>(sizes)...}, owner);
}

// One a file of this folder.
void bind_kernels(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_pool(nb::module_& module);
void bind_sync(nb::module_& module);
void bind_vulkan(nb::module_& module);
void bind_tree(nb::module_& module);
void bind_verify(nb::module_& module);
void bind_enumerate(nb::module_& module);
void bind_draft(nb::module_& module);
void bind_model(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_scenario(nb::module_& module);
void bind_measure(nb::module_& module);
void bind_memory_cost(nb::module_& module);
void bind_trace(nb::module_& module);
void bind_text(nb::module_& module);

}  // namespace sapwood::python
