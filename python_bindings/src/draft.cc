// The suffix automaton and the drafters built on it.

#include "bindings.h"
#include "draft/ngram_table.h"
#include "draft/suffix_automaton.h"
#include "draft/target_survey.h"
#include "measure/tree_cost.h"

namespace sapwood::python {

void bind_draft(nb::module_& module) {
  nb::class_<SuffixAutomaton>(module, "SuffixAutomaton",
                              "Which tokens followed every substring of a text, and how often.")
      .def(
          "__init__",
          [](SuffixAutomaton* self, int capacity) {
            if (capacity < 2) raise_invalid("capacity must be at least 2");
            new (self) SuffixAutomaton(capacity);
          },
          nb::arg("capacity"), "`capacity`: tokens; the oldest half is forgotten when it is full.")
      .def("__len__", &SuffixAutomaton::size)
      .def("clear", &SuffixAutomaton::clear)
      .def("append", &SuffixAutomaton::append, nb::arg("token"))
      .def(
          "followers",
          [](const SuffixAutomaton& self, const std::vector<int32_t>& context)
              -> std::optional<std::vector<std::pair<int32_t, int32_t>>> {
            const int state = self.find(context);
            if (state == SuffixAutomaton::kNoState) return std::nullopt;
            std::vector<std::pair<int32_t, int32_t>> followers;
            for (int e = self.first_edge(state); e != SuffixAutomaton::kNoEdge;
                 e = self.edge(e).next) {
              followers.emplace_back(self.edge(e).token, self.edge(e).count);
            }
            return followers;
          },
          nb::arg("context"),
          "(token, count) of what followed `context`, the latest first; None if it never occurred.")
      .def(
          "longest_seen_suffix",
          [](const SuffixAutomaton& self) { return self.length(self.longest_seen_suffix()); },
          "Length of the longest suffix of the text that also occurs earlier in it.");

  nb::class_<NgramTable>(module, "NgramTable",
                         "What usually follows a token and a pair of tokens, from text.")
      .def_static(
          "build",
          [](const std::vector<std::vector<int32_t>>& texts, int vocabulary,
             std::string tokenizer_sha256) {
            return value_or_raise(
                NgramTable::build(texts, vocabulary, std::move(tokenizer_sha256)));
          },
          nb::arg("texts"), nb::kw_only(), nb::arg("vocabulary"), nb::arg("tokenizer_sha256"),
          "From texts as token ids.")
      .def_static(
          "read",
          [](const std::string& path, int vocabulary, const std::string& tokenizer_sha256) {
            return value_or_raise(NgramTable::read(path, vocabulary, tokenizer_sha256));
          },
          nb::arg("path"), nb::kw_only(), nb::arg("vocabulary"), nb::arg("tokenizer_sha256"))
      .def(
          "write",
          [](const NgramTable& self, const std::string& path) {
            raise_unless_ok(self.write(path));
          },
          nb::arg("path"), "Whole or not at all.")
      .def("__len__", [](const NgramTable& self) { return self.records().size(); });

  nb::class_<TargetSurvey>(module, "TargetSurvey",
                           "Asks a target what it says after every single token.")
      .def_static(
          "create",
          [](std::shared_ptr<Model> model, const std::vector<int32_t>& context) {
            return value_or_raise(TargetSurvey::create(std::move(model), context));
          },
          nb::arg("model"), nb::arg("context"), nb::call_guard<nb::gil_scoped_release>(),
          "`context`: tokens that come before each, at least one.")
      .def_prop_ro("tokens", &TargetSurvey::tokens, "To be asked in all.")
      .def_prop_ro("asked", &TargetSurvey::asked)
      .def(
          "ask", [](TargetSurvey& self, int count) { raise_unless_ok(self.ask(count)); },
          nb::arg("count"), nb::call_guard<nb::gil_scoped_release>(), "The next `count` tokens.")
      .def("table", &TargetSurvey::table, nb::kw_only(), nb::arg("tokenizer_sha256"),
           "What was found out so far.");

  nb::class_<TreeCost>(module, "TreeCost",
                       "What a step costs beside the model: medians in microseconds.")
      .def_ro("nodes", &TreeCost::nodes)
      .def_ro("grow", &TreeCost::grow)
      .def_ro("layout", &TreeCost::layout)
      .def_ro("verify", &TreeCost::verify)
      .def_ro("follow", &TreeCost::follow)
      .def_ro("observe", &TreeCost::observe)
      .def_ro("select_row", &TreeCost::select_row);
  module.def(
      "tree_cost",
      [](std::string_view drafter, int vocabulary, int nodes, int rounds) {
        return value_or_raise(tree_cost(drafter, vocabulary, nodes, rounds));
      },
      nb::arg("drafter"), nb::kw_only(), nb::arg("vocabulary"), nb::arg("nodes"), nb::arg("rounds"),
      nb::call_guard<nb::gil_scoped_release>(),
      "Grows, lays out, verifies greedily and learns from trees of `nodes` nodes.");
}

}  // namespace sapwood::python
