// UnifiedPool and its handles.

#include "bindings.h"
#include "memory/unified_pool.h"

namespace sapwood::python {
namespace {

MemoryKind memory_kind_or_raise(std::string_view name) {
  const std::optional<MemoryKind> kind = parse_memory_kind(name);
  if (kind) return *kind;
  std::string message = "memory kind must be";
  for (const MemoryKind known : creatable_memory_kinds()) {
    message += ' ' + std::string(memory_kind_name(known)) + ',';
  }
  raise_invalid(message + " not \"" + std::string(name) + "\"");
}

CpuAccess access_or_raise(std::string_view name) {
  if (name == "r") return CpuAccess::kRead;
  if (name == "w") return CpuAccess::kWrite;
  if (name == "rw") return CpuAccess::kReadWrite;
  raise_invalid("access must be r, w or rw, not \"" + std::string(name) + "\"");
}

}  // namespace

void bind_pool(nb::module_& module) {
  module.def(
      "memory_kinds",
      [] {
        std::vector<std::pair<std::string, std::optional<std::string>>> kinds;
        for (const MemoryKind kind : creatable_memory_kinds()) {
          const Status status = try_memory_kind(kind);
          kinds.emplace_back(memory_kind_name(kind),
                             status.ok() ? std::nullopt : std::optional(status.message()));
        }
        return kinds;
      },
      "Kinds of memory that a pool can be made of, best first, each with why this machine has none "
      "of it, or None.");

  nb::class_<TensorHandle>(
      module, "TensorHandle",
      "One reference to a piece of a pool; when the last one goes, the bytes are free again.")
      .def_prop_ro("nbytes", &TensorHandle::bytes)
      .def_prop_ro("offset", &TensorHandle::offset, "From the start of the pool's memory.")
      .def_prop_ro("references", &TensorHandle::references, "0 once released.")
      .def(
          "share", [](const TensorHandle& self) { return TensorHandle(self); },
          "Another reference to the same bytes.")
      .def("release", &TensorHandle::release, "Lets this reference go.")
      .def(
          "array",
          [](const TensorHandle& self) {
            if (!self) raise_invalid("the tensor handle was released");
            // The view holds a reference of its own.
            auto owner = std::make_unique<TensorHandle>(self);
            nb::capsule capsule(owner.get(), [](void* handle) noexcept {
              delete static_cast<TensorHandle*>(handle);
            });
            owner.release();
            return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>, nb::c_contig>(
                self.data(), {self.bytes()}, capsule);
          },
          "A view of the bytes, which keeps them.")
      .def(
          "cpu_access",
          [](const TensorHandle& self, std::string_view access) {
            return value_or_raise(self.cpu_access(access_or_raise(access)));
          },
          nb::arg("access") = "rw",
          "A context: what is done to the bytes inside it, r, w or rw, is in order with devices.");

  nb::class_<CpuAccessScope>(module, "CpuAccessScope")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](CpuAccessScope& self, nb::args) { raise_unless_ok(self.end()); },
          nb::arg("error"), nb::sig("def __exit__(self, *error: object) -> None"))
      .def("end", [](CpuAccessScope& self) { raise_unless_ok(self.end()); });

  nb::class_<UnifiedPool>(
      module, "UnifiedPool",
      "Memory that stages, processes and devices share, handed out in page-aligned pieces.")
      .def_static(
          "create",
          [](size_t bytes, std::optional<std::string_view> kind, bool guard_pages) {
            return value_or_raise(
                UnifiedPool::create(kind ? memory_kind_or_raise(*kind) : best_memory_kind(), bytes,
                                    {.guard_pages = guard_pages}));
          },
          nb::arg("nbytes"), nb::arg("kind") = nb::none(), nb::arg("guard_pages") = false,
          "Without a kind, the best that this machine has (memory_kinds).")
      .def_static(
          "import_fd",
          [](int fd, size_t bytes) { return value_or_raise(UnifiedPool::import(fd, bytes)); },
          nb::arg("fd"), nb::arg("nbytes"),
          "Maps a dma-buf, or a memfd sealed with F_SEAL_SHRINK. `fd` stays the caller's.")
      .def(
          "allocate",
          [](UnifiedPool& self, size_t bytes) { return value_or_raise(self.allocate(bytes)); },
          nb::arg("nbytes"))
      .def(
          "export_fd", [](const UnifiedPool& self) { return value_or_raise(self.export_fd()); },
          "A new descriptor of all of the pool's memory, the caller's to close.")
      .def_prop_ro(
          "kind",
          [](const UnifiedPool& self) { return std::string(memory_kind_name(self.kind())); })
      .def_prop_ro("nbytes", &UnifiedPool::bytes)
      .def_prop_ro("available_bytes", &UnifiedPool::available_bytes)
      .def_prop_ro("peak_bytes", &UnifiedPool::peak_bytes);
}

}  // namespace sapwood::python
