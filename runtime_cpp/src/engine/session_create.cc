// Making a session: what is refused, and what it starts with.
#include <algorithm>
#include <string>
#include <utility>

#include "draft/drafters.h"
#include "engine/session_state.h"
#include "memory/pooled_floats.h"
#include "model/check_batch.h"

namespace sapwood {
namespace {

// Whether a cache, perhaps made for other sessions, fits the model and has room for this one.
Status check_cache(const Model& model, PrefixCache& cache, const SessionOptions& options) {
  const ModelSpec& spec = model.spec();
  const KvLayout& layout = cache.kv().layout();
  if (cache.kv().layers() != spec.layers || layout.kv_heads != spec.kv_heads ||
      layout.head_dim != spec.head_dim) {
    return invalid("the cache was made for another model");
  }
  SAPWOOD_TRY(check_format(model, layout.format));
  if (cache.slots() < options.context_length + options.max_tree_nodes) {
    return invalid("the cache has " + std::to_string(cache.slots()) +
                   " KV slots, too few for a context of " + std::to_string(options.context_length) +
                   " tokens and " + std::to_string(options.max_tree_nodes) + " guesses");
  }
  return Status::okay();
}

}  // namespace

Session::State::State(std::shared_ptr<Model> the_model, SessionOptions options)
    : model(std::move(the_model)),
      context_length(options.context_length),
      max_nodes(options.max_tree_nodes),
      drafter(std::move(options.drafter)),
      drafter_name(drafter->traits().name),
      double_buffer(options.double_buffer),
      trace(std::move(options.system_trace)),
      curve(options.cost_curve),
      measured_costs(std::move(options.measured_costs)),
      learn_costs(options.learn_costs),
      cache(std::move(options.cache)),
      share_prefixes(options.share_prefixes),
      sampler(model->spec().vocabulary_size),
      layout(std::max(model->max_rows(), max_nodes + 1)),
      logits(pooled_floats(static_cast<size_t>(max_nodes + 1) * model->spec().vocabulary_size)),
      step_slots(layout.max_rows()),
      committed(cache, context_length),
      watchdog(options.watchdog) {
  verdict.reserve(max_nodes + 1);
  tokens.reserve(context_length);
  if (options.draft_thread && drafter->traits().pass_milliseconds > 0) {
    draft_thread = std::make_unique<DraftThread>(drafter);
  }
}

Result<std::shared_ptr<PrefixCache>> Session::make_cache(const Model& model,
                                                         const SessionOptions& options) {
  const ModelSpec& spec = model.spec();
  const int needed = options.context_length + options.max_tree_nodes;
  if (options.kv_slots != 0 && options.kv_slots < needed) {
    return invalid(std::to_string(options.kv_slots) + " KV slots are too few for a context of " +
                   std::to_string(options.context_length) + " tokens and " +
                   std::to_string(options.max_tree_nodes) + " guesses; it takes at least " +
                   std::to_string(needed));
  }
  SAPWOOD_TRY(check_format(model, options.kv));
  Result<std::unique_ptr<KvStore>> kv = KvStore::create(
      spec.layers, spec.kv_heads, spec.head_dim, std::max(options.kv_slots, needed), options.kv);
  if (!kv.ok()) return kv.status();
  return std::make_shared<PrefixCache>(std::move(kv).value());
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<Model> model,
                                                 SessionOptions options) {
  if (model == nullptr) return invalid("a session needs a model");
  const ModelSpec& spec = model->spec();
  if (options.context_length < 1 ||
      (spec.context_length > 0 && options.context_length > spec.context_length)) {
    return invalid("a context of " + std::to_string(options.context_length) +
                   " tokens was asked for; this model takes 1 to " +
                   std::to_string(spec.context_length));
  }
  if (options.max_tree_nodes < 0) {
    return invalid("a tree cannot have " + std::to_string(options.max_tree_nodes) + " nodes");
  }
  options.max_tree_nodes =
      std::min({options.max_tree_nodes, DraftTree::kCapacity, model->max_rows() - 1});
  SAPWOOD_TRY(options.watchdog.check());
  if (!options.measured_costs.empty()) SAPWOOD_TRY(options.measured_costs.check());
  if (options.drafter == nullptr) {
    Result<std::unique_ptr<Drafter>> drafter = make_drafter("mix");
    if (!drafter.ok()) return drafter.status();
    options.drafter = std::move(drafter).value();
  }
  const DrafterTraits& traits = options.drafter->traits();
  if (!traits.deterministic && !traits.gives_proposals) {
    return Status(Code::kUnsupported, "the drafter " + std::string(traits.name) +
                                          " neither chooses its tokens by rank nor says which "
                                          "laws it draws them from");
  }
  if (!traits.hidden_layers.empty()) {
    const Status kept = model->keep_hidden_states(traits.hidden_layers);
    if (!kept.ok()) {
      return Status(kept.code(), "the drafter " + std::string(traits.name) +
                                     " needs the target's hidden states: " + kept.message());
    }
  }
  if (traits.vocabulary_size != 0 && traits.vocabulary_size != spec.vocabulary_size) {
    return invalid("the drafter " + std::string(traits.name) + " knows " +
                   std::to_string(traits.vocabulary_size) + " tokens and the target " +
                   std::to_string(spec.vocabulary_size) + "; give it a model of the same family");
  }
  if (options.cache == nullptr) {
    Result<std::shared_ptr<PrefixCache>> cache = make_cache(*model, options);
    if (!cache.ok()) return cache.status();
    options.cache = std::move(cache).value();
  }
  SAPWOOD_TRY(check_cache(*model, *options.cache, options));
  return std::unique_ptr<Session>(
      new Session(std::make_unique<State>(std::move(model), std::move(options))));
}

}  // namespace sapwood
