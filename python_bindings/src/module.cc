// sapwood._runtime: the C++ runtime as Python sees it.

#include "base/code_name.h"
#include "bindings.h"

namespace sapwood::python {
namespace {

void translate_status(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const StatusError& error) {
    nb::object type = nb::module_::import_("sapwood.errors").attr("SapwoodError");
    nb::object exception = type(error.status().message());
    exception.attr("code") = code_name(error.status().code());
    PyErr_SetObject(type.ptr(), exception.ptr());
  }
}

}  // namespace
}  // namespace sapwood::python

NB_MODULE(_runtime, module) {
  module.doc() = "The Sapwood runtime: models, sessions, and the parts they are made of.";
  module.attr("__version__") = SAPWOOD_VERSION;
  nanobind::register_exception_translator(sapwood::python::translate_status);
  sapwood::python::bind_memory(module);
  sapwood::python::bind_pool(module);
  sapwood::python::bind_sync(module);
  sapwood::python::bind_vulkan(module);
  sapwood::python::bind_kernels(module);
  sapwood::python::bind_tree(module);
  sapwood::python::bind_verify(module);
  sapwood::python::bind_enumerate(module);
  sapwood::python::bind_model(module);
  sapwood::python::bind_draft(module);
  sapwood::python::bind_trace(module);
  sapwood::python::bind_engine(module);
  sapwood::python::bind_scenario(module);
  sapwood::python::bind_measure(module);
  sapwood::python::bind_memory_cost(module);
  sapwood::python::bind_text(module);
}
