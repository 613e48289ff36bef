#include "interleavings.h"

#include <ucontext.h>

#include <bit>
#include <cstddef>
#include <unordered_set>
#include <utility>

namespace sapwood {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

struct Program {
  std::function<void()> code;
  ucontext_t context = {};
  std::vector<std::byte> stack;
  bool ended = false;
  long operations = 0;
  uint64_t history = 0;
};

struct Explorer {
  ucontext_t choosing = {};
  std::vector<Program> programs;
  Program* running = nullptr;
  std::vector<std::pair<const void*, uint64_t (*)(const void*)>> atomics;
};
Explorer* explorer = nullptr;

// SplitMix64's finaliser (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) + 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

void run_program() {
  explorer->running->code();
  explorer->running->ended = true;
  swapcontext(&explorer->running->context, &explorer->choosing);
}

void start(Program& program, std::function<void()> code) {
  program.code = std::move(code);
  program.ended = false;
  program.operations = 0;
  program.history = 0;
  program.stack.resize(kStackBytes);
  getcontext(&program.context);
  program.context.uc_stack.ss_sp = program.stack.data();
  program.context.uc_stack.ss_size = program.stack.size();
  program.context.uc_link = nullptr;
  makecontext(&program.context, run_program, 0);
}

void go_on(Program& program) {
  explorer->running = &program;
  ++program.operations;
  swapcontext(&explorer->choosing, &program.context);
  explorer->running = nullptr;
}

uint64_t state() {
  uint64_t hash = 0;
  for (const auto& [atomic, bits] : explorer->atomics) hash = mix(hash, bits(atomic));
  for (const Program& program : explorer->programs) {
    hash = mix(mix(mix(hash, program.history), static_cast<uint64_t>(program.operations)),
               program.ended ? 1 : 0);
  }
  return hash;
}

// One bit for each program that has not ended.
uint32_t runnable() {
  uint32_t bits = 0;
  for (size_t i = 0; i < explorer->programs.size(); ++i) {
    if (!explorer->programs[i].ended) bits |= uint32_t{1} << i;
  }
  return bits;
}

}  // namespace

namespace interleaving {

void stop() {
  if (explorer == nullptr || explorer->running == nullptr) return;
  swapcontext(&explorer->running->context, &explorer->choosing);
}

void observe(uint64_t value) {
  if (explorer == nullptr || explorer->running == nullptr) return;
  explorer->running->history = mix(explorer->running->history, value);
}

long operations() { return explorer->running->operations; }

void add(const void* atomic, uint64_t (*bits)(const void*)) {
  if (explorer != nullptr) explorer->atomics.emplace_back(atomic, bits);
}

}  // namespace interleaving

bool can_explore() {
#ifdef __SANITIZE_THREAD__
  return false;
#else
  return true;
#endif
}

Explored explore(const std::function<std::unique_ptr<World>()>& make, int most_steps) {
  Explored explored;
  Explorer the_explorer;
  explorer = &the_explorer;
  std::unordered_set<uint64_t> seen;
  // At each step of the present order, the programs that are still to be tried there; the lowest
  // one is the one that goes on.
  std::vector<uint32_t> path;
  do {
    the_explorer.atomics.clear();
    const std::unique_ptr<World> world = make();
    std::vector<std::function<void()>> codes = world->programs();
    the_explorer.programs.resize(codes.size());
    for (size_t i = 0; i < codes.size(); ++i) start(the_explorer.programs[i], std::move(codes[i]));
    bool whole = true;
    for (size_t depth = 0; whole && runnable() != 0; ++depth) {
      if (depth == path.size()) {
        if (!seen.insert(state()).second) {
          whole = false;
          break;
        }
        path.push_back(runnable());
      }
      Program& program = the_explorer.programs[static_cast<size_t>(std::countr_zero(path[depth]))];
      go_on(program);
      if (program.operations > most_steps) {
        ++explored.cut;
        whole = false;
      }
    }
    if (whole) {
      ++explored.runs;
      world->check();
    }
    while (!path.empty()) {
      path.back() &= path.back() - 1;
      if (path.back() != 0) break;
      path.pop_back();
    }
  } while (!path.empty());
  explored.states = static_cast<long>(seen.size());
  explorer = nullptr;
  return explored;
}

}  // namespace sapwood
