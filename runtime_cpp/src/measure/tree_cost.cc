#include "measure/tree_cost.h"

#include <array>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "draft/drafters.h"
#include "draft/top_successors.h"
#include "measure/median.h"
#include "tree/row_layout.h"
#include "verify/target_draw.h"

namespace sapwood {
namespace {

constexpr int kWarmUp = 200;   // steps before anything is timed
constexpr int kAlphabet = 40;  // tokens of the text: few, so that it repeats itself

double microseconds_since(Clock::time_point begin) { return seconds_since(begin) * 1e6; }

}  // namespace

Result<TreeCost> tree_cost(std::string_view name, int vocabulary, int nodes, int rounds) {
  if (vocabulary < kAlphabet || nodes < 1 || nodes > DraftTree::kCapacity || rounds < 1) {
    return Status(Code::kInvalidArgument, "a vocabulary of at least " + std::to_string(kAlphabet) +
                                              ", 1 to " + std::to_string(DraftTree::kCapacity) +
                                              " nodes and a round are needed");
  }
  Result<std::unique_ptr<Drafter>> made = make_drafter(name);
  if (!made.ok()) return made.status();
  Drafter& drafter = *made.value();

  std::mt19937 random(1);
  const size_t width = static_cast<size_t>(vocabulary);
  // As many rows as a pass has, so that they lie as far from the processor as they do after one.
  std::vector<float> logits(width * (static_cast<size_t>(nodes) + 1));
  std::normal_distribution<float> normal(0, 3);
  for (float& logit : logits) logit = normal(random);
  const auto likely_after = [](int32_t token) { return (token * 7 + 3) % kAlphabet; };

  const CostCurve free_rows =
      CostCurve::measured(std::array<int, 2>{1, 256}, std::array<double, 2>{1.0, 1.0});
  DraftRequest request;
  request.cost = &free_rows;
  request.max_nodes = request.max_depth = nodes;
  Sampler sampler(vocabulary);
  RowLayout layout(nodes + 1);
  DraftTree tree;
  Verdict verdict;
  verdict.reserve(nodes + 1);
  std::vector<int32_t> text = {0, 1, 2};
  const int steps = kWarmUp + rounds;
  SAPWOOD_TRY(drafter.start(text, 4 + 2 * steps * (nodes + 1)));
  SAPWOOD_TRY(sampler.start({}, text));
  std::vector<int32_t> context(1024), slots(static_cast<size_t>(nodes) + 1);
  for (size_t i = 0; i < context.size(); ++i) context[i] = static_cast<int32_t>(i);
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int32_t>(context.size() + i);

  std::vector<double> grow, lay, verify, follow, observe, select;
  TopSelector selector;
  selector.reserve(vocabulary);
  TopSuccessors top;
  for (int step = 0; step < steps; ++step) {
    tree.clear();
    const Clock::time_point t0 = Clock::now();
    SAPWOOD_TRY(drafter.propose(request, tree));
    const double grown = microseconds_since(t0);
    const Clock::time_point t1 = Clock::now();
    const std::span<const int32_t> used(slots.data(), static_cast<size_t>(tree.size()) + 1);
    const RowBatch batch = layout.tree_rows(text.back(), tree, context, used);
    const double laid = microseconds_since(t1);

    // The target says what mostly follows, now and then something else.
    std::vector<std::pair<size_t, float>> changed;
    for (int row = 0; row < batch.rows(); ++row) {
      const int32_t token = random() % 4 != 0 ? likely_after(batch.tokens[row])
                                              : static_cast<int32_t>(random() % kAlphabet);
      const size_t at = static_cast<size_t>(row) * width + static_cast<size_t>(token);
      changed.emplace_back(at, logits[at]);
      logits[at] = 20;
    }
    const std::span<const float> rows(logits.data(), width * used.size());
    const Clock::time_point t2 = Clock::now();
    SAPWOOD_TRY(target_draw(tree, rows, sampler, 0, {nodes + 1, {}}, verdict));
    const double verified = microseconds_since(t2);
    const size_t before = text.size();
    text.insert(text.end(), verdict.emitted.begin(), verdict.emitted.end());
    const Clock::time_point t3 = Clock::now();
    drafter.follow(verdict.emitted);
    const double followed = microseconds_since(t3);
    const Clock::time_point t4 = Clock::now();
    drafter.observe(
        {std::span<const int32_t>(text).first(before), tree, rows, vocabulary, verdict.emitted});
    const double observed = microseconds_since(t4);
    const Clock::time_point t5 = Clock::now();
    selector.select(rows.first(width), top);
    const double selected = microseconds_since(t5);
    for (const auto& [at, was] : changed) logits[at] = was;
    if (step < kWarmUp || tree.size() < nodes) continue;
    grow.push_back(grown);
    lay.push_back(laid);
    verify.push_back(verified);
    follow.push_back(followed);
    observe.push_back(observed);
    select.push_back(selected);
  }
  if (grow.empty()) {
    return Status(Code::kInvalidArgument, "the drafter " + std::string(name) + " grew no tree of " +
                                              std::to_string(nodes) + " nodes to measure");
  }
  return TreeCost{nodes,          median(grow),    median(lay),   median(verify),
                  median(follow), median(observe), median(select)};
}

}  // namespace sapwood
