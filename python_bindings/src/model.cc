// Bundles, and models on the hosts that can run them.

#include "model/model.h"

#include <algorithm>
#include <numeric>

#include "bindings.h"
#include "draft/trained_draft.h"
#include "model/draft_folder.h"
#include "model/draft_head.h"
#include "model/draft_model.h"
#include "model/executorch.h"
#include "model/native.h"
#ifdef SAPWOOD_WITH_ONNXRUNTIME
#include "model/onnxruntime.h"
#endif

namespace sapwood::python {
namespace {

std::shared_ptr<Model> open_native(const std::string& folder, int threads, int max_rows,
                                   bool verify_checksums) {
  if (threads < 1 || max_rows < 1) raise_invalid("threads and max_rows must be at least 1");
  nb::gil_scoped_release unlocked;
  return value_or_raise(open_native_model(open_bundle(folder, verify_checksums),
                                          {.threads = threads, .max_rows = max_rows}));
}

#ifdef SAPWOOD_WITH_ONNXRUNTIME
constexpr bool kWithOnnxRuntime = true;
std::shared_ptr<Model> open_onnxruntime(const std::string& folder, int threads, int max_rows,
                                        bool verify_checksums, const std::string& library) {
  if (threads < 1 || max_rows < 1) raise_invalid("threads and max_rows must be at least 1");
  nb::gil_scoped_release unlocked;
  return value_or_raise(
      open_onnxruntime_model(open_bundle(folder, verify_checksums),
                             {.threads = threads, .max_rows = max_rows, .library = library}));
}
#else
constexpr bool kWithOnnxRuntime = false;
std::shared_ptr<Model> open_onnxruntime(const std::string&, int, int, bool, const std::string&) {
  throw StatusError(Status(Code::kUnsupported, "this build has no ONNX Runtime host"));
}
#endif

std::shared_ptr<Model> open_executorch(const std::string& folder, int threads, int max_rows,
                                       bool verify_checksums, const std::string& library,
                                       const std::string& runtime) {
  if (threads < 1 || max_rows < 1) raise_invalid("threads and max_rows must be at least 1");
  nb::gil_scoped_release unlocked;
  return value_or_raise(open_executorch_model(
      open_bundle(folder, verify_checksums),
      {.threads = threads, .max_rows = max_rows, .library = library, .runtime = runtime}));
}

// Runs on the target's threads, where those are to be had: the two never run at the same time.
// With threads of its own it may run while the target does.
NativeOptions beside(const Model& target, int threads, bool own_threads) {
  if (threads < 1) raise_invalid("threads must be at least 1");
  return {.threads = threads, .team = own_threads ? nullptr : target.team()};
}

std::shared_ptr<Model> open_draft(const std::string& folder, const std::string& target_folder,
                                  const Model& target, int threads, bool own_threads,
                                  bool verify_checksums) {
  const NativeOptions options = beside(target, threads, own_threads);
  nb::gil_scoped_release unlocked;
  return value_or_raise(open_draft_model(*open_bundle(target_folder, false),
                                         open_bundle(folder, verify_checksums), options));
}

std::shared_ptr<Model> open_first_layers(const std::string& target_folder, const Model& target,
                                         int threads, bool own_threads) {
  const NativeOptions options = beside(target, threads, own_threads);
  nb::gil_scoped_release unlocked;
  return value_or_raise(open_early_exit(open_bundle(target_folder, false), options));
}

std::shared_ptr<const TrainedDraft> open_trained(const std::string& folder,
                                                 const std::string& target_folder,
                                                 const Model& target, int threads, bool own_threads,
                                                 bool verify_checksums) {
  const NativeOptions options = beside(target, threads, own_threads);
  nb::gil_scoped_release unlocked;
  return value_or_raise(open_trained_draft(folder, open_bundle(target_folder, false),
                                           {.verify_checksums = verify_checksums}, options));
}

std::shared_ptr<DraftHead> open_head(const std::string& folder, const std::string& target_folder,
                                     int threads, int max_rows) {
  nb::gil_scoped_release unlocked;
  auto draft = std::make_shared<const DraftFolder>(value_or_raise(DraftFolder::open(folder)));
  return value_or_raise(DraftHead::open(std::move(draft), open_bundle(target_folder, false),
                                        {.threads = threads, .max_rows = max_rows}));
}

std::pair<NumpyArray<float, 2>, NumpyArray<float, 2>> forward_head(
    DraftHead& head, KvStore& kv, const std::vector<int32_t>& tokens,
    const std::vector<int32_t>& positions, const std::vector<int32_t>& slots,
    const std::vector<int32_t>& context_slots, const std::vector<int32_t>& path_slots,
    const std::vector<int32_t>& path_begin, const std::vector<int32_t>& path_end,
    const FloatMatrix& features, const FloatMatrix& states, const TextVocabulary* vocabulary) {
  std::optional<TextVocabulary> without_text;
  if (vocabulary == nullptr) vocabulary = &without_text.emplace(head.make_vocabulary());
  std::vector<int32_t> all(tokens.size());
  std::iota(all.begin(), all.end(), 0);
  const RowBatch batch{tokens,     positions,  slots,    context_slots,
                       path_slots, path_begin, path_end, all};
  const size_t law = static_cast<size_t>(vocabulary->size());
  const size_t hidden = head.spec().hidden_size;
  auto logits = new_array<float>(tokens.size(), law);
  auto out = new_array<float>(tokens.size(), hidden);
  raise_unless_ok(head.forward(batch, {features.data(), features.size()},
                               {states.data(), states.size()}, *vocabulary, kv,
                               {logits.data(), tokens.size() * law}));
  std::copy(head.states().begin(), head.states().end(), out.data());
  return {logits, out};
}

void check_tokens(const TextVocabulary& vocabulary, const std::vector<int32_t>& text) {
  for (const int32_t token : text) {
    if (token < 0 || token >= vocabulary.vocabulary_size()) {
      raise_invalid("token " + std::to_string(token) + " is not one of " +
                    std::to_string(vocabulary.vocabulary_size()));
    }
  }
}

void check_draft(const std::string& folder) {
  nb::gil_scoped_release unlocked;
  (void)value_or_raise(DraftFolder::open(folder));
}

void check_bundle(const std::string& folder) {
  nb::gil_scoped_release unlocked;
  (void)value_or_raise(Bundle::open(folder));
}

NumpyArray<float, 2> forward(Model& model, KvStore& kv, const std::vector<int32_t>& tokens,
                             const std::vector<int32_t>& positions,
                             const std::vector<int32_t>& slots,
                             const std::vector<int32_t>& context_slots,
                             const std::vector<int32_t>& path_slots,
                             const std::vector<int32_t>& path_begin,
                             const std::vector<int32_t>& path_end,
                             const std::vector<int32_t>& output_rows) {
  const RowBatch batch{tokens,     positions,  slots,    context_slots,
                       path_slots, path_begin, path_end, output_rows};
  const size_t vocabulary = model.spec().vocabulary_size;
  auto logits = new_array<float>(output_rows.size(), vocabulary);
  nb::gil_scoped_release unlocked;
  raise_unless_ok(model.forward(batch, kv, {logits.data(), output_rows.size() * vocabulary}));
  return logits;
}

NumpyArray<float, 3> hidden_states(const Model& model) {
  const std::span<const float> states = model.hidden_states();
  const size_t kept = model.kept_layers().size();
  const size_t hidden_size = model.spec().hidden_size;
  const size_t rows = kept == 0 ? 0 : states.size() / (kept * hidden_size);
  auto copy = new_array<float>(rows, kept, hidden_size);
  std::copy(states.begin(), states.end(), copy.data());
  return copy;
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<ModelSpec>(module, "ModelSpec", "What a decoder is made of.")
      .def_ro("family", &ModelSpec::family)
      .def_ro("vocabulary_size", &ModelSpec::vocabulary_size)
      .def_ro("hidden_size", &ModelSpec::hidden_size)
      .def_ro("intermediate_size", &ModelSpec::intermediate_size)
      .def_ro("layers", &ModelSpec::layers)
      .def_ro("heads", &ModelSpec::heads)
      .def_ro("kv_heads", &ModelSpec::kv_heads)
      .def_ro("head_dim", &ModelSpec::head_dim)
      .def_ro("context_length", &ModelSpec::context_length)
      .def_ro("sliding_window", &ModelSpec::sliding_window);

  nb::class_<Model>(module, "Model", "A model on some host. Every host gives the same bits.")
      .def_prop_ro("spec", &Model::spec, nb::rv_policy::reference_internal)
      .def_prop_ro("host", [](const Model& self) { return std::string(self.host()); })
      .def_prop_ro("max_rows", &Model::max_rows)
      .def_prop_ro("shows_hidden_states", &Model::shows_hidden_states)
      .def("forward", &forward, nb::arg("kv"), nb::kw_only(), nb::arg("tokens"),
           nb::arg("positions"), nb::arg("slots"), nb::arg("context_slots"), nb::arg("path_slots"),
           nb::arg("path_begin"), nb::arg("path_end"), nb::arg("output_rows"),
           "One pass over a batch of rows (kernels/row_batch.h): logits "
           "[output_rows, vocabulary_size] in float32. The GIL is released.")
      .def(
          "keep_hidden_states",
          [](Model& self, const std::vector<int>& layers) {
            raise_unless_ok(self.keep_hidden_states(layers));
          },
          nb::arg("layers"),
          "From the next pass on, hidden_states() gives the outputs of these layers: counted from "
          "1, ascending; 0 is the embedding; none at first. Raises SapwoodError for layers the "
          "model does not have, and on hosts that do not show them.")
      .def("hidden_states", &hidden_states,
           "Of every row of the latest pass: float32 [rows, layers kept, hidden_size], before any "
           "norm.");

  module.def("check_bundle", &check_bundle, nb::arg("folder"),
             "Reads and checks everything in a bundle. Raises SapwoodError naming what is wrong.");
  module.def("open_native_model", &open_native, nb::arg("folder"), nb::kw_only(),
             nb::arg("threads"), nb::arg("max_rows") = NativeOptions().max_rows,
             nb::arg("verify_checksums") = true,
             "The bundle's target on the native host. Raises SapwoodError if it cannot be used.");
  module.def("open_draft_model", &open_draft, nb::arg("folder"), nb::kw_only(),
             nb::arg("target_folder"), nb::arg("target"), nb::arg("threads"),
             nb::arg("own_threads") = false, nb::arg("verify_checksums") = true,
             "A bundle that drafts for `target`, which was opened from `target_folder` and whose "
             "vocabulary it must have. On the native host; runs on the target's threads, or on as "
             "many of its own where the target keeps its to itself.");
  nb::class_<TrainedDraft>(module, "TrainedDraft",
                           "A draft that was trained for a target, opened for it.")
      .def_prop_ro("drafter", [](const TrainedDraft& self) { return std::string(self.drafter()); });
  nb::class_<TextVocabulary>(module, "TextVocabulary",
                             "A draft's tokens by entry of its laws, and beside them those of a "
                             "text that it lacks.")
      .def(
          "begin",
          [](TextVocabulary& self, const std::vector<int32_t>& text) {
            check_tokens(self, text);
            self.begin(text);
          },
          nb::arg("text"), "The tokens of this text, and no others from before.")
      .def(
          "add",
          [](TextVocabulary& self, const std::vector<int32_t>& text) {
            check_tokens(self, text);
            self.add(text);
          },
          nb::arg("text"), "Further ones; when there is no place left, the oldest makes room.")
      .def_prop_ro("tokens", [](const TextVocabulary& self) {
        return std::vector<int32_t>(self.tokens().begin(), self.tokens().end());
      });
  nb::class_<DraftHead>(module, "DraftHead", "A trained head alone: its passes as they are.")
      .def_static("open", &open_head, nb::arg("folder"), nb::kw_only(), nb::arg("target_folder"),
                  nb::arg("threads"), nb::arg("max_rows") = NativeOptions().max_rows)
      .def(
          "make_kv",
          [](const DraftHead& self, int slots) { return value_or_raise(self.make_kv(slots)); },
          nb::arg("slots"))
      .def("forward", &forward_head, nb::arg("kv"), nb::kw_only(), nb::arg("tokens"),
           nb::arg("positions"), nb::arg("slots"), nb::arg("context_slots"), nb::arg("path_slots"),
           nb::arg("path_begin"), nb::arg("path_end"), nb::arg("features"), nb::arg("states"),
           nb::arg("vocabulary") = nb::none(),
           "One pass: `features` of the first rows, `states` of all others; logits [rows, entries "
           "of the vocabulary] and states [rows, hidden_size] of every row, in float32. "
           "vocabulary: None is that of no text.")
      .def("make_vocabulary", &DraftHead::make_vocabulary)
      .def(
          "uncertainty",
          [](DraftHead& self, const FloatVector& state) {
            if (state.size() != static_cast<size_t>(self.spec().hidden_size)) {
              raise_invalid("a state has " + std::to_string(self.spec().hidden_size) + " numbers");
            }
            return self.uncertainty({state.data(), state.size()});
          },
          nb::arg("state"));
  module.def("check_draft", &check_draft, nb::arg("folder"),
             "Reads and checks everything in a draft folder. Raises SapwoodError naming what is "
             "wrong.");
  module.def("open_trained_draft", &open_trained, nb::arg("folder"), nb::kw_only(),
             nb::arg("target_folder"), nb::arg("target"), nb::arg("threads"),
             nb::arg("own_threads") = false, nb::arg("verify_checksums") = true,
             "A draft folder that was trained for `target`, which was opened from `target_folder`. "
             "Runs on the target's threads, or on as many of its own as `threads` says.");
  module.def("open_early_exit", &open_first_layers, nb::arg("target_folder"), nb::kw_only(),
             nb::arg("target"), nb::arg("threads"), nb::arg("own_threads") = false,
             "The first layers of a bundle that has an early exit, to draft for the whole.");
  module.def(
      "built_with_onnxruntime", [] { return kWithOnnxRuntime; },
      "Whether this build has the ONNX Runtime host.");
  module.def("open_onnxruntime_model", &open_onnxruntime, nb::arg("folder"), nb::kw_only(),
             nb::arg("threads"), nb::arg("max_rows") = NativeOptions().max_rows,
             nb::arg("verify_checksums") = true, nb::arg("library") = "",
             "The bundle's target.onnx on ONNX Runtime, whose C library is `library`.");
  module.def("open_executorch_model", &open_executorch, nb::arg("folder"), nb::kw_only(),
             nb::arg("threads"), nb::arg("max_rows") = NativeOptions().max_rows,
             nb::arg("verify_checksums") = true, nb::arg("library") = "", nb::arg("runtime") = "",
             "The bundle's target.pte on ExecuTorch, by way of libsapwood_executorch.so, which is "
             "`library`. `runtime` is the folder with ExecuTorch's own libraries.");
}

}  // namespace sapwood::python
