// Where a template's names live while it is rendered, and what its parts compile to.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "template/value.h"

namespace sapwood::chat {

// What lives as long as a rendering does: macros, which may be called from anywhere, see no more.
struct Globals {
  Dictionary given;  // what the template was given
  Dictionary set;    // what it sets at its top
  int calls = 0;     // of macros, inside each other
};

// Frames, the innermost last: names of a loop's body end with it, as in Jinja.
class Scope {
 public:
  explicit Scope(Globals* globals) : globals_(globals) {}  // outlives it

  Value get(const std::string& name) const;
  void set(const std::string& name, Value value);  // in the innermost frame
  void enter() { frames_.emplace_back(); }
  void leave() { frames_.pop_back(); }
  Globals* globals() const { return globals_; }

  int line = 1;  // of the statement that runs

 private:
  Globals* globals_;
  std::vector<Dictionary> frames_;
};

enum class Flow { kNext, kBreak, kContinue };

using Expression = std::function<Value(Scope&)>;
using Statement = std::function<Flow(Scope&, std::string*)>;
using Block = std::vector<Statement>;

}  // namespace sapwood::chat
