// Deadlines, and what a step does with a stage that fails or misses its own: the text of plain
// decoding whatever happens, every slot returned, and a report.
#include "engine/watchdog.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "make_test_bundle.h"
#include "model/native.h"
#include "session_fixture.h"
#include "tree/row_layout.h"

namespace sapwood {
namespace {

using Plan = Fallback::Plan;

constexpr double kShort = 0.02;  // seconds; what misses it takes thrice as long
constexpr int kContext = 512;

void dawdle() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

// ---- the watchdog itself ------------------------------------------------------------------------

TEST(Watchdog, DeadlinesFollowTheCostCurveAndThePaceOfTheDeviceAboveAFloor) {
  Watchdog watchdog({.least_seconds = 0.5, .factor = 20});
  EXPECT_DOUBLE_EQ(watchdog.limit(1), 5);  // nothing is known yet
  watchdog.passed(1, 0.001);               // as the curve says
  EXPECT_DOUBLE_EQ(watchdog.limit(1), 0.5);
  EXPECT_DOUBLE_EQ(watchdog.limit(100), 2);
  EXPECT_DOUBLE_EQ(watchdog.limit_of_one_row(100), 20);
  for (int i = 0; i < 200; ++i) watchdog.passed(1, 0.01);  // a device ten times slower
  EXPECT_NEAR(watchdog.limit(100), 20, 1e-3);
  Watchdog off({.least_seconds = 0});
  EXPECT_EQ(Watchdog::after(off.limit(1)), kNoDeadline);
  EXPECT_GT(Watchdog::after(1), std::chrono::steady_clock::now());
  EXPECT_FALSE(WatchdogOptions{.least_seconds = -1}.check().ok());
  EXPECT_FALSE((WatchdogOptions{.least_seconds = 1, .factor = 0.5}.check().ok()));
}

TEST(Watchdog, GoesDownByAChainAndUpAgainAfterEverLongerCalm) {
  Watchdog watchdog({});
  watchdog.start(Mode::kDynamic);
  EXPECT_TRUE(watchdog.report().empty());
  watchdog.draft_was_late("slow", 2, 1);
  EXPECT_EQ(watchdog.plan(), Plan::kChain);
  EXPECT_EQ(watchdog.report(),
            "the drafter slow took 2000 ms where 1000 ms are allowed; a chain for a while");
  watchdog.pass_was_given_up(12, 1);
  EXPECT_EQ(watchdog.plan(), Plan::kPlain);
  EXPECT_EQ(watchdog.report(),
            "a pass over 12 rows was given up after 1000 ms; no drafting for a while");
  EXPECT_EQ(watchdog.missed(), 2);
  const auto steps_until = [&](Plan plan) {
    int steps = 0;
    for (; watchdog.plan() != plan && steps < 5000; ++steps) watchdog.step_done();
    return steps;
  };
  EXPECT_EQ(steps_until(Plan::kChain), 2 * Watchdog::kFirstCalm);
  EXPECT_EQ(steps_until(Plan::kAsAsked), 2 * Watchdog::kFirstCalm);
  watchdog.pass_was_late(1, 2, 1);
  EXPECT_EQ(steps_until(Plan::kAsAsked), 4 * Watchdog::kFirstCalm);
  for (int i = 0; i < 20; ++i) watchdog.pass_was_late(1, 2, 1);
  EXPECT_EQ(steps_until(Plan::kChain), Watchdog::kLongestCalm);
  watchdog.start(Mode::kChain);
  EXPECT_EQ(watchdog.plan(), Plan::kAsAsked);
  EXPECT_EQ(watchdog.missed(), 0);
  watchdog.draft_was_late("slow", 2, 1);  // a chain is what was asked for
  EXPECT_EQ(watchdog.plan(), Plan::kPlain);
  EXPECT_EQ(steps_until(Plan::kAsAsked), Watchdog::kFirstCalm);
}

TEST(Watchdog, AFailedDraftIsOverForTheAnswerAndOneThatHangsForTheSession) {
  Watchdog watchdog({});
  watchdog.start(Mode::kDynamic);
  watchdog.draft_failed("broken", "no idea");
  for (int i = 0; i < 5000; ++i) watchdog.step_done();
  EXPECT_EQ(watchdog.plan(), Plan::kPlain);
  EXPECT_EQ(watchdog.report(), "the drafter broken failed: no idea; no drafting in this answer");
  watchdog.start(Mode::kDynamic);
  EXPECT_EQ(watchdog.plan(), Plan::kAsAsked);
  watchdog.draft_hangs("stuck", 1);
  watchdog.start(Mode::kDynamic);
  EXPECT_EQ(watchdog.plan(), Plan::kPlain);
  EXPECT_EQ(watchdog.report(),
            "the drafter stuck did not answer within 1000 ms; no drafting in this session");
}

// ---- in a session -------------------------------------------------------------------------------

// Guesses `right` tokens of the answer a step, until told otherwise.
struct Told {
  std::function<Status()> before_draft = [] { return Status::okay(); };
  int asked = 0;
};

class ToldDrafter final : public Drafter {
 public:
  ToldDrafter(Text answer, std::shared_ptr<Told> told)
      : oracle_(std::move(answer), true), told_(std::move(told)) {}
  const DrafterTraits& traits() const override { return traits_; }
  Status start(std::span<const int32_t> tokens, int max_tokens) override {
    return oracle_.start(tokens, max_tokens);
  }
  void follow(std::span<const int32_t> tokens) override { oracle_.follow(tokens); }
  Status propose(const DraftRequest& request, DraftTree& tree) override {
    ++told_->asked;
    SAPWOOD_TRY(told_->before_draft());
    return oracle_.propose(request, tree);
  }

 private:
  DrafterTraits traits_{.name = "told"};
  Oracle oracle_;
  const std::shared_ptr<Told> told_;
};

// An answer of 80 tokens, what plain decoding makes of it, and a session over some host of its
// model.
struct KnownAnswer {
  KnownAnswer() {
    options.max_new_tokens = 80;
    expected = plain_answer(*model, prompt, options, kContext);
  }

  void open(std::shared_ptr<Model> host, WatchdogOptions watchdog,
            std::unique_ptr<Drafter> drafter) {
    SessionOptions session_options;
    session_options.context_length = kContext;
    session_options.max_tree_nodes = 12;
    session_options.cost_curve = cheap_rows();
    session_options.learn_costs = false;
    session_options.share_prefixes = false;
    session_options.watchdog = watchdog;
    session_options.drafter = std::move(drafter);
    session = Session::create(std::move(host), std::move(session_options)).value();
  }

  void expect_the_text() {
    EXPECT_EQ(answer(*session, prompt, options), expected);
    EXPECT_EQ(session->kv_slots_taken(), static_cast<int>(prompt.size() + expected.size()) - 1);
    EXPECT_EQ(model->damaged_slots, 0);
  }

  // Steps until one fails, with `error`; what came before it is the answer's beginning.
  Text emitted_until_it_fails(Status& error) {
    Text emitted;
    error = session->start(prompt, options);
    EXPECT_TRUE(error.ok()) << error.message();
    while (error.ok()) {
      const auto tokens = session->step();
      error = tokens.status();
      if (tokens.ok()) emitted.insert(emitted.end(), tokens.value().begin(), tokens.value().end());
    }
    EXPECT_EQ(emitted,
              Text(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(emitted.size())));
    EXPECT_EQ(session->kv_slots_taken(), static_cast<int>(prompt.size() + emitted.size()) - 1);
    return emitted;
  }

  const Text prompt = {4, 5, 6};
  GenerateOptions options;
  std::shared_ptr<FakeModel> model =
      std::make_shared<FakeModel>(FakeModel::Options{.vocabulary = 30, .max_rows = 16});
  Text expected;
  std::unique_ptr<Session> session;
};

struct Watched : KnownAnswer {
  explicit Watched(WatchdogOptions watchdog = {.least_seconds = kShort}) {
    open(model, watchdog, std::make_unique<ToldDrafter>(expected, told));
  }
  std::shared_ptr<Told> told = std::make_shared<Told>();
};

// The pace is known after a few passes, and with it the floor counts.
bool after_the_third(int passes) { return passes == 4; }

TEST(WatchedSession, WhatIsOnTimeIsNotReported) {
  Watched watched{WatchdogOptions()};
  watched.expect_the_text();
  EXPECT_EQ(watched.session->stats().missed_deadlines, 0);
  EXPECT_TRUE(watched.session->stats().watchdog.empty());
  EXPECT_GT(watched.session->stats().mean_accepted_length(), 3);
}

TEST(WatchedSession, ALateDraftIsUsedAndTheNextOnesAreChains) {
  Watched watched;
  watched.told->before_draft = [&] {
    if (after_the_third(watched.told->asked)) dawdle();
    return Status::okay();
  };
  watched.expect_the_text();
  EXPECT_GE(watched.session->stats().missed_deadlines, 1);
  EXPECT_NE(watched.session->stats().watchdog.find("the drafter told took"), std::string::npos);
}

TEST(WatchedSession, AFailingDraftEndsDraftingNotTheAnswer) {
  for (int failing = 1; failing < 6; ++failing) {
    Watched watched{WatchdogOptions()};
    watched.told->before_draft = [&] {
      return watched.told->asked == failing ? Status(Code::kInternal, "out of ideas")
                                            : Status::okay();
    };
    watched.expect_the_text();
    EXPECT_EQ(watched.session->stats().missed_deadlines, 1);
    EXPECT_EQ(watched.session->stats().watchdog,
              "the drafter told failed: out of ideas; no drafting in this answer");
    EXPECT_EQ(watched.told->asked, failing);
    watched.expect_the_text();  // the next one is drafted
    EXPECT_EQ(watched.session->stats().missed_deadlines, 0);
    EXPECT_GT(watched.told->asked, failing);
  }
}

TEST(WatchedSession, ALatePassIsUsedAndLessIsDraftedForAWhile) {
  Watched watched;
  watched.model->before_pass = [&] {
    if (after_the_third(watched.model->passes)) dawdle();
  };
  watched.expect_the_text();
  EXPECT_GE(watched.session->stats().missed_deadlines, 1);
  // How long is allowed follows the pace of the machine, above the floor.
  const std::string& told = watched.session->stats().watchdog;
  EXPECT_EQ(told.rfind("a pass over ", 0), 0u) << told;
  EXPECT_NE(told.find(" ms are allowed; "), std::string::npos) << told;
}

// A target on a device, whose fence is a timeline that somebody should signal.
class OnDevice final : public Model {
 public:
  explicit OnDevice(std::shared_ptr<FakeModel> model) : model_(std::move(model)) {}
  const ModelSpec& spec() const override { return model_->spec(); }
  std::string_view host() const override { return "device"; }
  int max_rows() const override { return model_->max_rows(); }
  void set_deadline(Deadline deadline) override { deadline_ = deadline; }
  Status forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) override {
    const int pass = passes++;
    // Without the fence the slots hold anything: here the halves of another pass.
    if (lost && lost(pass, batch.rows())) return Status(Code::kInternal, "the device was lost");
    if (!silent || !silent(pass, batch.rows())) {
      SAPWOOD_TRY(model_->forward(batch, kv, logits));
      SAPWOOD_TRY(fence_.signal(fence_.value() + 1));
      return Status::okay();
    }
    for (const int32_t slot : batch.slots) kv.copy_slot(0, slot);
    const Wait outcome = fence_.wait(fence_.value() + 1, deadline_);
    EXPECT_EQ(outcome, Wait::kMissed);
    return Status(Code::kCancelled, "the fence was not signalled in time");
  }

  std::function<bool(int pass, int rows)> silent;
  std::function<bool(int pass, int rows)> lost;
  int passes = 0;

 private:
  const std::shared_ptr<FakeModel> model_;
  HostTimeline fence_;
  Deadline deadline_ = kNoDeadline;
};

struct DeviceSession : KnownAnswer {
  DeviceSession() {
    open(device, {.least_seconds = 0.005}, std::make_unique<Oracle>(expected, true));
  }
  std::shared_ptr<OnDevice> device = std::make_shared<OnDevice>(model);
};

TEST(WatchedSession, AFenceThatNeverSignalsCostsATreeAndNeitherTextNorSlots) {
  for (int silent = 2; silent < 9; ++silent) {
    DeviceSession watched;
    // From this pass on, everything wider than one row.
    watched.device->silent = [&](int pass, int rows) { return pass >= silent && rows > 1; };
    watched.expect_the_text();
    EXPECT_GE(watched.session->stats().missed_deadlines, 2);
    EXPECT_NE(watched.session->stats().watchdog.find("was given up after"), std::string::npos);
    watched.device->silent = nullptr;  // the device is well again
    watched.expect_the_text();
  }
}

TEST(WatchedSession, ATargetThatIsSilentForEverEndsTheAnswerWhereItWas) {
  DeviceSession watched;
  watched.device->silent = [&](int pass, int) { return pass >= 5; };
  Status status;
  watched.emitted_until_it_fails(status);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("the target does not answer"), std::string::npos);
  watched.device->silent = nullptr;
  watched.expect_the_text();
}

TEST(WatchedSession, ALostDeviceIsAnErrorThatKeepsWhatWasEmittedAndEverySlot) {
  for (int lost = 1; lost < 8; ++lost) {
    DeviceSession watched;
    watched.device->lost = [&](int pass, int) { return pass >= lost; };
    Status status;
    Text emitted = watched.emitted_until_it_fails(status);
    EXPECT_EQ(status.message(), "the device was lost");
    // An engine over a new device takes the text as its prompt and goes on with the same answer.
    Text text = watched.prompt;
    text.insert(text.end(), emitted.begin(), emitted.end());
    GenerateOptions rest = watched.options;
    rest.max_new_tokens -= static_cast<int>(emitted.size());
    DeviceSession again;
    const Text more = answer(*again.session, text, rest);
    emitted.insert(emitted.end(), more.begin(), more.end());
    EXPECT_EQ(emitted, watched.expected);
  }
}

// ---- our own threads ----------------------------------------------------------------------------

TEST(NativeModel, StopsBetweenLayersAtItsDeadlineUnlessItHasOneRow) {
  const std::string folder = write_test_bundle(test_bundle_options("llama")).value();
  const auto bundle = std::make_shared<const Bundle>(Bundle::open(folder).value());
  for (const int threads : {1, 3}) {
    const auto model = open_native_model(bundle, {.threads = threads, .max_rows = 8}).value();
    const ModelSpec& spec = model->spec();
    const auto kv = KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, 16).value();
    RowLayout layout(8);
    const Text text = {1, 2, 3, 4};
    const Text slots = {0, 1, 2, 3};
    model->set_deadline(Deadline::min());
    EXPECT_EQ(model->forward(layout.text_rows(text, {}, slots), *kv, {}).code(), Code::kCancelled);
    EXPECT_TRUE(
        model
            ->forward(layout.text_rows(std::span(text).first(1), {}, std::span(slots).first(1)),
                      *kv, {})
            .ok());
    model->set_deadline(kNoDeadline);
    EXPECT_TRUE(model->forward(layout.text_rows(text, {}, slots), *kv, {}).ok());
  }
}

}  // namespace
}  // namespace sapwood
