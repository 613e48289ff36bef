// Measuring: the machine's limits and what a pass costs, for `sapwood bench kernels`.

#include "bindings.h"
#include "measure/machine.h"
#include "measure/model_cost.h"
#include "measure/random_model.h"
#include "model/native.h"

namespace sapwood::python {
namespace {

void construct(ModelCost* self, const std::string& folder, const std::string& shape, int threads,
               int max_rows, int max_context, std::string_view kv) {
  if (threads < 1 || max_rows < 1 || max_context < 1) {
    raise_invalid("threads, max_rows and max_context must be at least 1");
  }
  const KvFormat format = kv_format_or_raise(kv);
  nb::gil_scoped_release unlocked;
  new (self) ModelCost(shape.empty() ? open_bundle(folder, /*verify_checksums=*/false)
                                     : value_or_raise(random_model(shape)),
                       threads, max_rows, max_context, format);
}

std::shared_ptr<Model> native_model(ModelCost& self, int max_rows) {
  return value_or_raise(
      open_native_model(self.bundle(), {.max_rows = max_rows, .team = self.team()}));
}

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

}  // namespace

void bind_measure(nb::module_& module) {
  module.def(
      "known_shapes",
      [] { return std::vector<std::string>(known_shapes().begin(), known_shapes().end()); },
      "Names of model sizes that ModelCost can measure with random weights.");
  nb::class_<ModelCost>(module, "ModelCost",
                        "What a pass over a bundle's target, or over random weights of a known "
                        "shape, costs: whole and by part.")
      .def("__init__", &construct, nb::arg("folder") = "", nb::kw_only(), nb::arg("shape") = "",
           nb::arg("threads"), nb::arg("max_rows"), nb::arg("max_context"),
           nb::arg("kv") = "float16")
      .def("native_model", &native_model, nb::arg("max_rows"), Unlocked(),
           "A native host over the same weights.")
      .def(
          "linears", [](ModelCost& self, int rows) { return value_or_raise(self.linears(rows)); },
          nb::arg("rows"), Unlocked(), "Milliseconds of all linear layers and the head, once.")
      .def(
          "attention",
          [](ModelCost& self, int rows, int context) {
            return value_or_raise(self.attention(rows, context));
          },
          nb::arg("rows"), nb::arg("context"), Unlocked(),
          "Milliseconds of the attention of all layers, once.")
      .def(
          "model",
          [](ModelCost& self, Model& model, int rows, int context) {
            return value_or_raise(self.model(model, rows, context));
          },
          nb::arg("model"), nb::arg("rows"), nb::arg("context"), Unlocked(),
          "Milliseconds of one pass over a root and rows - 1 children, with all their logits.")
      .def(
          "prefill",
          [](ModelCost& self, Model& model, int tokens) {
            return value_or_raise(self.prefill(model, tokens));
          },
          nb::arg("model"), nb::arg("tokens"), Unlocked(),
          "Milliseconds to fill an empty cache with so many tokens.")
      .def(
          "read_bandwidth",
          [](ModelCost& self) { return read_bandwidth(self.weights(), *self.team()); }, Unlocked(),
          "Bytes a second that the threads read of the weights, once.")
      .def(
          "int8_peak", [](ModelCost& self) { return int8_peak(*self.team()); }, Unlocked(),
          "int8 multiply-accumulates a second between registers, in the kernels in use.")
      .def(
          "barrier_seconds", [](ModelCost& self) { return barrier_seconds(*self.team()); },
          Unlocked(), "Seconds of a barrier that all threads come to at once.")
      .def_prop_ro("linear_bytes", &ModelCost::linear_bytes)
      .def_prop_ro("linear_multiplies", &ModelCost::linear_multiplies);
}

}  // namespace sapwood::python
