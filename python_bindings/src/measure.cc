// Measuring: the machine's limits and what a pass costs, for `sapwood bench kernels`.

#include "bindings.h"
#include "measure/machine.h"
#include "measure/model_cost.h"

namespace sapwood::python {
namespace {

void construct(ModelCost* self, const std::string& folder, int threads, int max_rows,
               int max_context) {
  if (threads < 1 || max_rows < 1 || max_context < 1) {
    raise_invalid("threads, max_rows and max_context must be at least 1");
  }
  auto bundle = std::make_shared<const Bundle>(
      value_or_raise(Bundle::open(folder, {.verify_checksums = false})));
  new (self) ModelCost(std::move(bundle), threads, max_rows, max_context);
}

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

}  // namespace

void bind_measure(nb::module_& module) {
  nb::class_<ModelCost>(module, "ModelCost",
                        "What a pass over a bundle's target costs, whole and by part.")
      .def("__init__", &construct, nb::arg("folder"), nb::kw_only(), nb::arg("threads"),
           nb::arg("max_rows"), nb::arg("max_context"))
      .def("linears", &ModelCost::linears, nb::arg("rows"), Unlocked(),
           "Milliseconds of all linear layers and the head, once.")
      .def("attention", &ModelCost::attention, nb::arg("rows"), nb::arg("context"), Unlocked(),
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
          [](ModelCost& self) { return read_bandwidth(self.weights(), self.team()); }, Unlocked(),
          "Bytes a second that the threads read of the weights, once.")
      .def(
          "int8_peak", [](ModelCost& self) { return int8_peak(self.team()); }, Unlocked(),
          "int8 multiply-accumulates a second between registers, in the kernels in use.")
      .def_prop_ro("linear_bytes", &ModelCost::linear_bytes)
      .def_prop_ro("linear_multiplies", &ModelCost::linear_multiplies);
}

}  // namespace sapwood::python
