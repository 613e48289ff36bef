// Measuring: the machine's limits and what a pass costs, for `sapwood bench kernels`.

#include "bindings.h"
#include "draft/trained_draft.h"
#include "measure/draft_quality.h"
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
  nb::class_<DraftComparison>(module, "DraftComparison",
                              "A trained draft's law of one token against its target's.")
      .def_ro("position", &DraftComparison::position)
      .def_ro("depth", &DraftComparison::depth, "1: right after what is verified.")
      .def_ro("same_top", &DraftComparison::same_top)
      .def_ro("covered", &DraftComparison::covered,
              "The draft can guess the target's likeliest token.")
      .def_ro("overlap", &DraftComparison::overlap, "Sum of min(p, q), temperature 1.")
      .def_ro("entropy", &DraftComparison::entropy, "Of the draft's law, in nats.")
      .def_prop_ro(
          "uncertainty",
          [](const DraftComparison& self) {
            return self.uncertainty < 0 ? std::optional<float>() : self.uncertainty;
          },
          "Predicted 1 - overlap; None: the draft has no uncertainty network.");
  nb::class_<DraftQuality::Cost>(module, "DraftPassCost", "Milliseconds, measured once.")
      .def_ro("target_row", &DraftQuality::Cost::target_row)
      .def_ro("text_pass", &DraftQuality::Cost::text_pass)
      .def_ro("node_pass", &DraftQuality::Cost::node_pass);
  nb::class_<DraftQuality>(module, "DraftQuality",
                           "How good a trained draft is on texts of its target, and what it costs.")
      .def_static(
          "create",
          [](std::shared_ptr<Model> target, const TrainedDraft& draft, int depths,
             int context_length) {
            return value_or_raise(
                DraftQuality::create(std::move(target), draft, depths, context_length));
          },
          nb::arg("target"), nb::arg("draft"), nb::kw_only(), nb::arg("depths"),
          nb::arg("context_length"))
      .def(
          "compare",
          [](DraftQuality& self, const std::vector<int32_t>& text, int first) {
            nb::gil_scoped_release unlocked;
            return value_or_raise(self.compare(text, first));
          },
          nb::arg("text"), nb::arg("first"),
          "Of every token from `first` on, at every depth, those before taken as right. The GIL is "
          "released.")
      .def(
          "cost",
          [](DraftQuality& self, int context, int unread, int nodes) {
            nb::gil_scoped_release unlocked;
            return value_or_raise(self.cost(context, unread, nodes));
          },
          nb::kw_only(), nb::arg("context"), nb::arg("unread"), nb::arg("nodes"),
          "A row of the target, a draft pass over `unread` rows of text and one over `nodes` "
          "nodes, once. The GIL is released.");

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
