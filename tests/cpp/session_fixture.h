// What the tests of a session over a model without arithmetic share: the session, the definition of
// its answer, and a drafter that knows it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "engine/session.h"
#include "fake_model.h"
#include "session_answer.h"

namespace sapwood {

// Rows that cost next to nothing beside a step's own time: dynamic trees grow large.
inline CostCurve cheap_rows() {
  return CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{1.0, 1.2});
}

struct SessionFixture {
  explicit SessionFixture(FakeModel::Options model_options = {}, int context = 512,
                          int nodes = 15) {
    model = std::make_shared<FakeModel>(model_options);
    SessionOptions options;
    options.context_length = context;
    options.max_tree_nodes = nodes;
    options.cost_curve = cheap_rows();
    options.learn_costs = false;
    Result<std::unique_ptr<Session>> created = Session::create(model, std::move(options));
    EXPECT_TRUE(created.ok()) << created.status().message();
    session = std::move(created).value();
  }

  Text answer() { return rest_of_answer(*session); }
  Text answer(const Text& prompt, const GenerateOptions& options) {
    return sapwood::answer(*session, prompt, options);
  }

  std::shared_ptr<FakeModel> model;
  std::unique_ptr<Session> session;
};

// The definition of the answer: one token after another, with no cache and no engine.
inline Text plain_answer(const FakeModel& model, const Text& prompt, const GenerateOptions& options,
                         int context) {
  Sampler sampler(model.spec().vocabulary_size);
  EXPECT_TRUE(sampler.start(options.sampling, prompt).ok());
  Text text = prompt;
  Text emitted;
  while (static_cast<int>(emitted.size()) < options.max_new_tokens &&
         static_cast<int>(text.size()) < context) {
    const int32_t token = sampler.choose(model.logits_after(text), emitted.size()).value();
    sampler.push(token);
    text.push_back(token);
    emitted.push_back(token);
    if (std::find(options.eos_token_ids.begin(), options.eos_token_ids.end(), token) !=
        options.eos_token_ids.end()) {
      break;
    }
  }
  return emitted;
}

// A drafter that knows the answer and offers it among wrong turns: every step accepts all of it.
class Oracle final : public Drafter {
 public:
  explicit Oracle(Text answer, bool wrong_first)
      : answer_(std::move(answer)), wrong_(wrong_first) {}
  const DrafterTraits& traits() const override { return traits_; }
  Status start(std::span<const int32_t>, int) override {
    at_ = 0;
    return Status::okay();
  }
  void follow(std::span<const int32_t> tokens) override { at_ += tokens.size(); }
  Status propose(const DraftRequest& request, DraftTree& tree) override {
    int node = DraftTree::kRoot;
    for (size_t i = at_; i < answer_.size() && tree.depth(node) < request.max_depth; ++i) {
      const int32_t other = answer_[i] == 0 ? 1 : 0;
      if (wrong_ && tree.size() + 2 <= request.max_nodes) tree.add(node, other, -1, -1, 0.1f);
      if (tree.size() == request.max_nodes) break;
      node = tree.add(node, answer_[i], -1, -1, 0.9f);
    }
    return Status::okay();
  }

  DrafterTraits traits_{.name = "oracle"};

 private:
  Text answer_;
  bool wrong_;
  size_t at_ = 0;
};

}  // namespace sapwood
