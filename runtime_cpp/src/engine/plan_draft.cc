// What a step is to draft: who has a say in it, and the request that comes of it.
#include <algorithm>

#include "engine/session_state.h"

namespace sapwood {

// The most restrictive of those who have a say.
StrategyChoice Session::State::choose_strategy() const {
  StrategyChoice choice = strategies.choice();
  if (forced) choice = {*forced, Reason::kNone};
  const auto follow = [&choice](Fallback::Plan plan, Reason why) {
    if (plan == Fallback::Plan::kChain) choice.at_most(Strategy::kChain, why);
    if (plan == Fallback::Plan::kPlain) choice.at_most(Strategy::kPlain, why);
  };
  if (adapts()) follow(fallback.plan(), Reason::kGuessesFailed);
  follow(watchdog.plan(), Reason::kDeadline);
  if (!governor.may_branch()) choice.at_most(Strategy::kChain, governor.memory_reason());
  if (!governor.may_draft()) choice.at_most(Strategy::kPlain, governor.heat_reason());
  return choice;
}

void Session::State::show_strategy(StrategyChoice choice) {
  if (choice.strategy == stats.strategy.strategy) return;
  // What was in the way is gone: whoever was says that nothing is the matter any more.
  if (choice.reason == Reason::kNone && choice.strategy == Strategy::kAsAsked) {
    choice.reason = Reason::kRecovered;
  }
  stats.strategy = choice;
  ++stats.strategy_changes;
  trace.value(TraceName::kStrategyChange, static_cast<int>(choice.strategy), choice.reason);
}

bool Session::State::plan_draft(DraftRequest& request) {
  // A step emits one token more than it accepts, so a deeper tree could not be used up; this also
  // keeps every node's position inside the context.
  request.max_depth = tokens_left() - 1;
  request.max_nodes = std::min(max_nodes, cache->make_room(max_nodes + 1) - 1);
  const StrategyChoice choice = choose_strategy();
  show_strategy(governor.is_narrow() && choice.strategy < Strategy::kNarrow
                    ? StrategyChoice{Strategy::kNarrow, governor.narrow_reason()}
                    : choice);
  if (choice.strategy == Strategy::kPlain) return false;
  controller.set_beta(static_cast<float>(stats.beta) + governor.beta_added());
  const Mode mode = choice.strategy == Strategy::kChain        ? Mode::kChain
                    : choice.strategy == Strategy::kGreedyTree ? Mode::kDynamic
                                                               : generate.mode;
  switch (mode) {
    case Mode::kPlain:
      return false;
    case Mode::kChain:
      request.growth = Growth::kChain;
      request.length_by_entropy = adapts() && generate.length_rule == LengthRule::kEntropy;
      if (!request.length_by_entropy) {
        request.max_nodes =
            std::min(request.max_nodes, adapts() ? chain_length.length() : generate.chain_length);
      }
      break;
    case Mode::kFixed:
      request.growth = Growth::kShape;
      request.shape = &shape;
      break;
    case Mode::kDynamic:
      request.growth = Growth::kBudgeted;
      request.cost = &curve;
      request.overhead_ms = overhead_ms;
      break;
  }
  if (request.max_nodes < 1 || request.max_depth < 1) return false;
  if (generate.verifier == Verifier::kBlock && draws_drafts()) request.max_width = 1;
  for (int* const size : {&request.max_width, &request.max_nodes}) {
    *size =
        choice.strategy == Strategy::kNarrow ? Governor::narrowed(*size) : governor.width(*size);
  }
  request.pruning = &controller;
  request.sampling = generate.sampling;
  request.sampling.seed = 0;
  request.trace = trace.tracing();
  request.traced = trace.event();
  return true;
}

}  // namespace sapwood
