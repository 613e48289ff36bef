// A drafter on a thread of its own: the stage `draft` of a StepGraph with two buffers.
//
//   engine   | draft(): ask, wait | target's pass          | sample, commit | rest() |
//   drafter  | learn, grow tree t | look ahead, pass by pass ... |  at rest         | learn, grow
//   ...
//
// While the target verifies tree t, the drafter looks beyond what is likeliest to come of it
// (Drafter::look_ahead) until the target is expected to have spoken, and is awake by then. What the
// target then decided is what both wait for: if the drafter has looked beyond that, tree t + 1 is
// there already, or most of it, and if not it grows from the text as ever. Either way it is a
// draft, and the target verifies it.
//
// Between two steps the thread rests, and the drafter and whatever it shares with others (a trained
// draft that several sessions use) may be used from the engine's thread. The drafter's network has
// threads of its own, not the target's.
//
// Everything the thread can write to, and everything it reads but for the target's weights, is in
// one block that it owns too. A drafter that hangs keeps it for ever (engine/watchdog.h): the
// engine goes on without, and reads none of it again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "draft/drafter.h"
#include "sync/step_graph.h"
#include "tree/draft_tree.h"
#include "tree/pruning.h"

namespace sapwood {

class DraftThread {
 public:
  explicit DraftThread(std::shared_ptr<Drafter> drafter);
  ~DraftThread();  // waits for the thread, unless it was left behind
  DraftThread(const DraftThread&) = delete;
  DraftThread& operator=(const DraftThread&) = delete;

  // At rest: a text begins, of at most `max_tokens`; a step verifies at most `max_rows` rows, with
  // so many hidden states each. The only call that allocates.
  void start(std::span<const int32_t> text, int max_tokens, int max_rows, size_t states_of_row,
             const TreeShape& shape);

  // At rest: has the thread learn what learn_later() was told and grow a tree, which is copied;
  // `controller` too. ask_for: null where none is wanted. look_ahead: while the target verifies it.
  // kMissed: the drafter hangs and the thread was left behind; nothing may be called after that.
  // Otherwise `drafted` is what the drafter returned.
  [[nodiscard]] Wait draft(const DraftRequest* ask_for, const SoftPruning& controller,
                           bool look_ahead, Deadline deadline, DraftTree& tree, Status& drafted);
  // Of the latest tree: see Drafter::saved_milliseconds. At rest.
  double saved_milliseconds() const;
  Ahead came_of_ahead() const;

  // The target's pass is over; once a step or more often.
  void verified();

  // What a step found out, the steps since the last one told being part of the text; all but the
  // logits is copied. `logits` stays as it is until the next
  // draft() has returned.
  void learn_later(const VerifiedRows& rows, std::shared_ptr<const float[]> logits);
  // At rest: learns it here and now.
  void learn_now();

  // The step is over: waits until the thread rests. kMissed as with draft().
  [[nodiscard]] Wait rest(Deadline deadline);

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);
  Wait left_behind(Wait outcome);

  std::shared_ptr<Shared> shared_;
  uint64_t step_ = 0;
  Clock::time_point target_began_;
  bool lost_ = false;
  std::thread thread_;
};

}  // namespace sapwood
