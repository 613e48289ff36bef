// A session whose prompts, drafts and cuts are the input's, against a text that is made one token
// after another without any cache. FakeModel reads its text back from the KV slots, so a slot that
// was lost, moved wrongly or freed too early changes the text or is counted as damage.
#include <algorithm>
#include <memory>
#include <vector>

#include "bytes.h"
#include "engine/session.h"
#include "fake_model.h"
#include "fuzz_target.h"
#include "promise.h"

namespace {

using namespace sapwood;
using Text = std::vector<int32_t>;

constexpr int kVocabulary = 6;
constexpr int kContext = 40;

// Any tree that keeps within the request; drawn ones from laws of the input's choice.
class FromBytes final : public Drafter {
 public:
  explicit FromBytes(Bytes& bytes) : bytes_(bytes) {}
  const DrafterTraits& traits() const override {
    static const DrafterTraits kTraits{.name = "bytes", .gives_proposals = true};
    return kTraits;
  }
  Status start(std::span<const int32_t>, int) override { return Status::okay(); }
  void follow(std::span<const int32_t>) override {}
  Status propose(const DraftRequest& request, DraftTree& tree) override {
    for (int tries = bytes_.below(30); tries > 0 && tree.size() < request.max_nodes; --tries) {
      const int parent = tree.size() - 1 - bytes_.below(3);
      if (parent < DraftTree::kRoot || tree.depth(parent) >= request.max_depth) continue;
      tree.add(parent, bytes_.below(kVocabulary), -1.f, -1.f, 0.5f);
    }
    return Status::okay();
  }
  Status propose_sampled(const DraftRequest& request, Chance& chance, DraftTree& tree,
                         Proposals& proposals) override {
    for (int tries = bytes_.below(30); tries > 0 && tree.size() < request.max_nodes; --tries) {
      const int parent = tree.size() - 1 - bytes_.below(3);
      if (parent < DraftTree::kRoot || tree.depth(parent) >= request.max_depth) continue;
      if (proposals.at(parent).size() == 0) name_law(parent, proposals);
      const int most = request.growth == Growth::kChain ? 1 : request.max_width;
      if (proposals.drawn(parent) >= most) continue;
      const int entry = proposals.draw(parent, chance);
      if (entry < 0) continue;
      tree.add(parent, proposals.at(parent).tokens[static_cast<size_t>(entry)], -1.f,
               proposals.log_q(parent, entry), 0.5f);
    }
    return Status::okay();
  }

 private:
  void name_law(int node, Proposals& proposals) {
    Text tokens;
    std::vector<float> log_q;
    for (int32_t token = 0; token < kVocabulary; ++token) {
      const int byte = bytes_.next();
      if (byte % 3 == 0 && token > 0) continue;
      tokens.push_back(token);
      log_q.push_back(-static_cast<float>(byte) / 40.f);
    }
    require(proposals.set(node, tokens, log_q), "a law is taken");
  }

  Bytes& bytes_;
};

// One token after another; with the verifiers of draws only the length of it is known beforehand.
Text plain_answer(const FakeModel& model, const Text& prompt, const GenerateOptions& options) {
  Sampler sampler(kVocabulary);
  require(sampler.start(options.sampling, prompt).ok(), "the options are valid");
  Text text = prompt;
  Text emitted;
  while (static_cast<int>(emitted.size()) < options.max_new_tokens &&
         static_cast<int>(text.size()) < kContext) {
    const int32_t token = sampler.choose(model.logits_after(text), emitted.size()).value();
    sampler.push(token);
    text.push_back(token);
    emitted.push_back(token);
    if (std::ranges::count(options.eos_token_ids, token) > 0) break;
  }
  return emitted;
}

void check_answer(Session& session, const FakeModel& model, const Text& prompt,
                  const GenerateOptions& options, Bytes& bytes) {
  require(session.start(prompt, options).ok(), "a prompt that fits is taken");
  const int cut = bytes.below(3) == 0 ? bytes.below(options.max_new_tokens + 1) : kContext;
  Text text;
  for (;;) {
    const Result<std::span<const int32_t>> step = session.step();
    require(step.ok(), "a step succeeds");
    if (step.value().empty()) break;
    text.insert(text.end(), step.value().begin(), step.value().end());
    if (static_cast<int>(text.size()) >= cut) {
      text.resize(static_cast<size_t>(cut));
      require(session.finish_at(cut).ok(), "an answer can be cut");
      break;
    }
  }
  require(model.damaged_slots == 0, "every slot holds what its place needs");
  require(model.highest_position < kContext, "no position lies beyond the context");
  const std::span<const int32_t> held = session.tokens();
  require(std::equal(prompt.begin(), prompt.end(), held.begin()) &&
              std::equal(text.begin(), text.end(), held.begin() + static_cast<long>(prompt.size()),
                         held.end()),
          "the session's text is the prompt and what was emitted");
  if (options.verifier == Verifier::kTargetDraw || options.sampling.greedy()) {
    Text expected = plain_answer(model, prompt, options);
    if (cut < static_cast<int>(expected.size())) expected.resize(static_cast<size_t>(cut));
    require(text == expected, "the text is plain decoding's");
  } else {
    const auto eos = std::ranges::find_first_of(text, options.eos_token_ids);
    require(eos == text.end() || eos + 1 == text.end(), "nothing comes after an end");
    require(static_cast<int>(text.size()) <= options.max_new_tokens, "the limit holds");
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (uint32_t i = 0; i < 10; ++i) seeds.push_back(random_bytes(i, 40 + 60 * i));
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, std::min<size_t>(size, 800));
  const auto model = std::make_shared<FakeModel>(
      FakeModel::Options{.vocabulary = kVocabulary, .max_rows = 1 + bytes.below(20), .habit = 2.f});
  SessionOptions session_options;
  session_options.context_length = kContext;
  session_options.max_tree_nodes = bytes.below(24);
  session_options.drafter = std::make_unique<FromBytes>(bytes);
  session_options.learn_costs = false;
  const auto session = std::move(Session::create(model, std::move(session_options))).value();
  Text prompt = {1, 2};
  for (int answers = 0; answers < 6 && !bytes.empty(); ++answers) {
    GenerateOptions options;
    options.mode = static_cast<Mode>(bytes.below(4));
    options.verifier = static_cast<Verifier>(bytes.below(4));
    if (options.verifier == Verifier::kBlock) options.mode = Mode::kChain;
    options.max_new_tokens = bytes.below(30);
    options.sampling.temperature = bytes.below(2) == 0 ? 0.f : 1.f;
    options.sampling.repetition_penalty = bytes.below(2) == 0 ? 1.f : 1.3f;
    options.sampling.seed = static_cast<uint64_t>(bytes.next());
    options.adapt = bytes.below(2) == 0;
    options.chain_length = bytes.below(8);
    if (bytes.below(2) == 0) options.eos_token_ids = {3};
    check_answer(*session, *model, prompt, options, bytes);
    // The next prompt shares a part of what is there.
    const std::span<const int32_t> held = session->tokens();
    const size_t shared = static_cast<size_t>(bytes.below(static_cast<int>(held.size()) + 1));
    prompt.assign(held.begin(), held.begin() + static_cast<long>(shared));
    for (int more = 1 + bytes.below(4); more > 0 && prompt.size() < kContext; --more) {
      prompt.push_back(bytes.below(kVocabulary));
    }
    if (prompt.size() > kContext) prompt.resize(kContext);
  }
  return 0;
}
