// The exactness report.

#include "bindings.h"
#include "verify/exactness.h"

namespace sapwood::python {

void bind_enumerate(nb::module_& module) {
  nb::class_<Exactness>(module, "Exactness", "One combination of the exactness report.")
      .def_ro("name", &Exactness::name)
      .def_ro("lossless", &Exactness::lossless, "Claimed; the ablations are known not to be.")
      .def_ro("deviation", &Exactness::deviation,
              "Total variation from plain decoding, the largest over the models.")
      .def_ro("expected_accepted", &Exactness::expected_accepted, "Nodes a step, mean.")
      .def_ro("optimum", &Exactness::optimum,
              "The largest of any valid verifier for these drafts, by linear programming.");

  nb::class_<TreeComparison>(module, "TreeComparison",
                             "Expected accepted nodes of two children a node and two levels.")
      .def_ro("models", &TreeComparison::models)
      .def_ro("naive", &TreeComparison::naive, "Multi-round, with replacement.")
      .def_ro("rejection", &TreeComparison::rejection, "Multi-round, without replacement.")
      .def_ro("traversal", &TreeComparison::traversal)
      .def_ro("sampled_optimum", &TreeComparison::sampled_optimum)
      .def_ro("ranked", &TreeComparison::ranked, "target_draw over the likeliest children.");

  nb::class_<ChainComparison>(module, "ChainComparison",
                              "Expected accepted nodes of sampled chains of three.")
      .def_ro("models", &ChainComparison::models)
      .def_ro("rejection", &ChainComparison::rejection)
      .def_ro("block", &ChainComparison::block)
      .def_ro("optimum", &ChainComparison::optimum)
      .def_ro("least_gain", &ChainComparison::least_gain,
              "The smallest of block minus rejection over the models.");

  module.attr("EXACT_TOLERANCE") = kExactTolerance;
  module.def(
      "exactness_report",
      [](int vocabulary, int depth, int nodes, int models) {
        return value_or_raise(exactness_report({vocabulary, depth, nodes, models}));
      },
      nb::kw_only(), nb::arg("vocabulary") = 4, nb::arg("depth") = 2, nb::arg("nodes") = 4,
      nb::arg("models") = 2,
      "Every verifier with every pruning, drafter and temperature, enumerated exactly.");
  module.def(
      "compare_on_trees", [](int models) { return value_or_raise(compare_on_trees(models)); },
      nb::arg("models"), "Verifiers of trees side by side, means over random models.");
  module.def(
      "compare_on_chains", [](int models) { return value_or_raise(compare_on_chains(models)); },
      nb::arg("models"), "Block against rejection, means over random models.");
}

}  // namespace sapwood::python
