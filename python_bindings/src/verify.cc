// Sampling and target_draw.

#include "bindings.h"
#include "tree/draft_tree.h"
#include "verify/random.h"
#include "verify/sampling.h"
#include "verify/target_draw.h"

namespace sapwood::python {
namespace {

std::span<const float> row_span(const FloatVector& logits, const Sampler& sampler) {
  if (static_cast<int>(logits.size()) != sampler.vocabulary_size()) {
    raise_invalid("logits must be [vocabulary_size]");
  }
  return {logits.data(), logits.size()};
}

// The law as a dense array of log probabilities, -infinity where a filter left nothing.
NumpyArray<float, 1> dense_law(Sampler& sampler, const FloatVector& logits) {
  const TokenLaw law = value_or_raise(sampler.law(row_span(logits, sampler)));
  auto out = new_array<float>(sampler.vocabulary_size());
  std::fill_n(out.data(), sampler.vocabulary_size(), -std::numeric_limits<float>::infinity());
  for (int i = 0; i < law.size(); ++i) out.data()[law.token(i)] = law.log_p[i];
  return out;
}

std::pair<std::vector<int>, std::vector<int32_t>> run_target_draw(
    const DraftTree& tree, const FloatMatrix& logits, Sampler& sampler, uint64_t index,
    int max_tokens, const std::vector<int32_t>& stop_tokens) {
  if (static_cast<int>(logits.shape(0)) != tree.size() + 1 ||
      static_cast<int>(logits.shape(1)) != sampler.vocabulary_size()) {
    raise_invalid("logits must be [1 + nodes, vocabulary_size], the root's row first");
  }
  if (max_tokens < 1) raise_invalid("max_tokens must be at least 1");
  Verdict verdict;
  raise_unless_ok(target_draw(tree, {logits.data(), logits.size()}, sampler, index,
                              {max_tokens, stop_tokens}, verdict));
  return {verdict.accepted, verdict.emitted};
}

}  // namespace

void bind_verify(nb::module_& module) {
  nb::class_<SamplingOptions>(module, "SamplingOptions",
                              "The transform from logits to the law a token is drawn from.")
      .def(
          "__init__",
          [](SamplingOptions* self, float temperature, int top_k, float top_p, float min_p,
             float repetition_penalty, uint64_t seed) {
            new (self) SamplingOptions{temperature, top_k, top_p, min_p, repetition_penalty, seed};
          },
          nb::kw_only(), nb::arg("temperature") = 0.f, nb::arg("top_k") = 0, nb::arg("top_p") = 1.f,
          nb::arg("min_p") = 0.f, nb::arg("repetition_penalty") = 1.f, nb::arg("seed") = 0)
      .def_rw("temperature", &SamplingOptions::temperature)
      .def_rw("top_k", &SamplingOptions::top_k)
      .def_rw("top_p", &SamplingOptions::top_p)
      .def_rw("min_p", &SamplingOptions::min_p)
      .def_rw("repetition_penalty", &SamplingOptions::repetition_penalty)
      .def_rw("seed", &SamplingOptions::seed)
      .def(
          "check", [](const SamplingOptions& self) { raise_unless_ok(self.check()); },
          "Raises SapwoodError naming the option that is out of range.");

  nb::class_<Sampler>(module, "Sampler", "Applies SamplingOptions along one sequence.")
      .def(
          "__init__",
          [](Sampler* self, int vocabulary_size) {
            if (vocabulary_size < 1) raise_invalid("vocabulary_size must be positive");
            new (self) Sampler(vocabulary_size);
          },
          nb::arg("vocabulary_size"))
      .def(
          "start",
          [](Sampler& self, const SamplingOptions& options, const std::vector<int32_t>& history) {
            raise_unless_ok(self.start(options, history));
          },
          nb::arg("options"), nb::arg("history") = std::vector<int32_t>())
      .def("push", &Sampler::push, nb::arg("token"))
      .def("law", &dense_law, nb::arg("logits"),
           "Log probabilities [vocabulary_size], -inf for what the filters leave out.")
      .def(
          "choose",
          [](Sampler& self, const FloatVector& logits, uint64_t index) {
            return value_or_raise(self.choose(row_span(logits, self), index));
          },
          nb::arg("logits"), nb::arg("index"), "The token at output position `index`.");

  module.def(
      "counter_uniform", [](uint64_t seed, uint64_t index) { return counter_uniform(seed, index); },
      nb::arg("seed"), nb::arg("index"),
      "The uniform in [0, 1) that the target's draw at this position uses.");
  module.def("target_draw", &run_target_draw, nb::arg("tree"), nb::arg("logits"),
             nb::arg("sampler"), nb::arg("index"), nb::arg("max_tokens"),
             nb::arg("stop_tokens") = std::vector<int32_t>(),
             "(accepted nodes, emitted tokens) of a deterministic tree; logits "
             "[1 + nodes, vocabulary_size], the root's row first.");
}

}  // namespace sapwood::python
