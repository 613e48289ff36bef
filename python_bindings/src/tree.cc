// DraftTree, CostCurve, CostGrid, the controller's trained head and DynamicTreePrune.

#include "bindings.h"
#include "tree/budget.h"
#include "tree/cost_grid.h"
#include "tree/draft_tree.h"
#include "tree/dynamic_tree_prune.h"
#include "tree/uncertainty_head.h"

namespace sapwood::python {
namespace {

int checked_node(const DraftTree& tree, int node) {
  if (node < 0 || node >= tree.size()) {
    raise_invalid("the tree has no node " + std::to_string(node));
  }
  return node;
}

int add_node(DraftTree& tree, int parent, int32_t token, float log_q,
             std::optional<float> log_q_kept, float acceptance) {
  const int node = tree.add(parent, token, log_q, log_q_kept.value_or(log_q), acceptance);
  if (node == DraftTree::kNone) {
    raise_invalid(tree.full() ? "the tree is full"
                              : "no such parent, or it has a child with this token already");
  }
  return node;
}

using PrunedRows = std::tuple<NumpyArray<int32_t, 2>, NumpyArray<float, 2>, NumpyArray<uint8_t, 2>>;

PrunedRows prune(FloatMatrix logits, float entropy_threshold, int max_tree_width, float beta_base,
                 float rho_min, float rho_max, float entropy_low) {
  const ControllerOptions options{.beta_base = beta_base,
                                  .rho_min = rho_min,
                                  .rho_max = rho_max,
                                  .max_tree_width = max_tree_width,
                                  .entropy_low = entropy_low,
                                  .entropy_high = entropy_threshold};
  raise_unless_ok(options.check());
  const size_t rows = logits.shape(0);
  const size_t width = static_cast<size_t>(max_tree_width);
  auto kept = new_array<int32_t>(rows, width);
  auto weights = new_array<float>(rows, width);
  auto mask = new_array<uint8_t>(rows, width);
  const int vocabulary = static_cast<int>(logits.shape(1));
  CandidateSelector selector(vocabulary);
  raise_unless_ok(dynamic_tree_prune({logits.data(), logits.size()}, static_cast<int>(rows),
                                     vocabulary, {}, options, selector, kept.data(), weights.data(),
                                     mask.data()));
  return {kept, weights, mask};
}

std::vector<int> path_to(const DraftTree& tree, int node) {
  std::vector<int> path(tree.depth(checked_node(tree, node)));
  tree.path(node, path);
  return path;
}

}  // namespace

void bind_tree(nb::module_& module) {
  nb::class_<DraftTree>(module, "DraftTree",
                        "A tree of guessed tokens; nodes are numbered, parents first, root -1.")
      .def(nb::init<>())
      .def("__len__", &DraftTree::size)
      .def("add", &add_node, nb::arg("parent"), nb::arg("token"), nb::arg("log_q"),
           nb::arg("log_q_kept") = nb::none(), nb::arg("acceptance") = 0.5f,
           "Adds a child and returns its number. `log_q` is the drafter's log probability.")
      .def("truncate", &DraftTree::truncate, nb::arg("nodes"), "Keeps the first `nodes` nodes.")
      .def("clear", &DraftTree::clear)
      .def(
          "token",
          [](const DraftTree& self, int node) { return self.token(checked_node(self, node)); },
          nb::arg("node"))
      .def(
          "parent",
          [](const DraftTree& self, int node) { return self.parent(checked_node(self, node)); },
          nb::arg("node"))
      .def(
          "depth",
          [](const DraftTree& self, int node) { return self.depth(checked_node(self, node)); },
          nb::arg("node"))
      .def(
          "path_acceptance",
          [](const DraftTree& self, int node) {
            return self.path_acceptance(checked_node(self, node));
          },
          nb::arg("node"))
      .def("path", &path_to, nb::arg("node"), "Nodes from the root's child down to `node`.")
      .def_prop_ro("max_depth", &DraftTree::max_depth)
      .def_prop_ro("expected_tokens", &DraftTree::expected_tokens,
                   "Of a step: 1 + the sum of the path acceptances.")
      .def_prop_ro("tokens",
                   [](const DraftTree& self) {
                     return std::vector<int32_t>(self.tokens().begin(), self.tokens().end());
                   })
      .def("to_text", [](const DraftTree& self) { return self.to_text(); })
      .def("to_json", &DraftTree::to_json);

  nb::class_<CostCurve>(module, "CostCurve", "Milliseconds to verify N rows, by N.")
      .def_static("assumed", &CostCurve::assumed)
      .def_static(
          "measured",
          [](const std::vector<int>& rows, const std::vector<double>& milliseconds) {
            if (rows.empty() || rows.size() != milliseconds.size()) {
              raise_invalid("rows and milliseconds must be of one length, at least 1");
            }
            return CostCurve::measured(rows, milliseconds);
          },
          nb::arg("rows"), nb::arg("milliseconds"))
      .def("milliseconds", &CostCurve::milliseconds, nb::arg("rows"));

  nb::class_<UncertaintyHead>(module, "UncertaintyHead",
                              "sigmoid(w2 . relu(W1 h + b1) + b2): how probable a rejection is.")
      .def_static(
          "create",
          [](const FloatMatrix& w1, const FloatVector& b1, const FloatVector& w2, float b2) {
            if (w1.shape(0) != b1.size()) raise_invalid("w1 must be [units, hidden], b1 [units]");
            return value_or_raise(UncertaintyHead::create(
                {w1.data(), w1.size()}, {b1.data(), b1.size()}, {w2.data(), w2.size()}, b2));
          },
          nb::arg("w1"), nb::arg("b1"), nb::arg("w2"), nb::arg("b2"),
          "w1 [units, hidden], b1 and w2 [units].")
      .def_prop_ro("hidden_size", &UncertaintyHead::hidden_size)
      .def(
          "uncertainty",
          [](const UncertaintyHead& self, const FloatVector& hidden) {
            if (static_cast<int>(hidden.size()) != self.hidden_size()) {
              raise_invalid("hidden must be [hidden_size]");
            }
            return self.uncertainty({hidden.data(), hidden.size()});
          },
          nb::arg("hidden"), "Of a hidden state [hidden_size], in [0, 1].");

  nb::class_<CostGrid>(module, "CostGrid",
                       "Milliseconds of a verify pass by rows and by committed tokens.")
      .def(
          "__init__",
          [](CostGrid* self, std::vector<int> contexts, std::vector<int> rows,
             const std::vector<std::vector<double>>& milliseconds) {
            CostGrid grid{std::move(contexts), std::move(rows), {}};
            for (const std::vector<double>& line : milliseconds) {
              grid.milliseconds.insert(grid.milliseconds.end(), line.begin(), line.end());
            }
            raise_unless_ok(grid.check());
            new (self) CostGrid(std::move(grid));
          },
          nb::arg("contexts"), nb::arg("rows"), nb::arg("milliseconds"),
          "Contexts and rows ascending; milliseconds [contexts][rows].")
      .def("at", &CostGrid::at, nb::arg("context"), "The curve over so many tokens.");

  module.def("dynamic_tree_prune", &prune, nb::arg("logits"), nb::kw_only(),
             nb::arg("entropy_threshold") = 2.5f, nb::arg("max_tree_width") = 16,
             nb::arg("beta_base") = 0.3f, nb::arg("rho_min") = 0.02f, nb::arg("rho_max") = 0.6f,
             nb::arg("entropy_low") = 0.8f,
             "The operator DynamicTreePrune: logits [rows, vocabulary] -> (kept_indices int32, "
             "importance_weights float32, tree_mask uint8), [rows, max_tree_width] each.");
}

}  // namespace sapwood::python
