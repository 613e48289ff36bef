// Runs a few small programs in every order that their atomic operations can take.
//
// The programs use SteppedAtomic in place of std::atomic. Before each of its operations a program
// stops, and the explorer chooses who goes on; it comes back to every choice until none is left.
// Orders that lead to the same shared values, with every program having seen the same, are gone
// through once. The memory is sequentially consistent: weaker orders are the thread sanitizer's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sapwood {

// What one run works on: fresh for every order.
class World {
 public:
  virtual ~World() = default;
  virtual std::vector<std::function<void()>> programs() = 0;
  virtual void check() = 0;  // after all programs have ended
};

struct Explored {
  long states = 0;  // distinct ones
  long runs = 0;    // that ended
  long cut = 0;     // in which a program went round for more than the limit
};

// A program of a run may make `most_steps` operations before the run is cut.
Explored explore(const std::function<std::unique_ptr<World>()>& make, int most_steps = 64);

// False under the thread sanitizer, which does not know of the switches of stacks.
bool can_explore();

namespace interleaving {
void stop();                   // lets the explorer choose, if a program is running
void observe(uint64_t value);  // what the operation gave becomes part of the program's history
long operations();             // of the running program so far
void add(const void* atomic, uint64_t (*bits)(const void*));
}  // namespace interleaving

template <typename T>
class SteppedAtomic {
 public:
  SteppedAtomic(T value = T()) : value_(value) {  // NOLINT: implicit like std::atomic's
    interleaving::add(this, [](const void* self) {
      return static_cast<uint64_t>(static_cast<const SteppedAtomic*>(self)->value_);
    });
  }
  SteppedAtomic(const SteppedAtomic&) = delete;

  T load(std::memory_order) const {
    interleaving::stop();
    return seen(value_);
  }
  void store(T value, std::memory_order) {
    interleaving::stop();
    value_ = value;
  }
  T fetch_add(T more, std::memory_order) {
    return change([more](T value) { return value + more; });
  }
  T fetch_and(T bits, std::memory_order) {
    return change([bits](T value) { return value & bits; });
  }
  T fetch_or(T bits, std::memory_order) {
    return change([bits](T value) { return value | bits; });
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order,
                               std::memory_order = std::memory_order_seq_cst) {
    interleaving::stop();
    if (seen(value_) != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, desired, success, failure);
  }

 private:
  static T seen(T value) {
    interleaving::observe(static_cast<uint64_t>(value));
    return value;
  }

  template <typename Change>
  T change(Change to) {
    interleaving::stop();
    const T before = seen(value_);
    value_ = static_cast<T>(to(before));
    return before;
  }

  T value_;
};

}  // namespace sapwood
