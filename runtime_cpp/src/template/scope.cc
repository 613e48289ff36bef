#include "template/scope.h"

#include <algorithm>

namespace sapwood::chat {
namespace {

// The latest of equal names counts.
const Value* find(const Dictionary& frame, const std::string& name) {
  const auto found = std::find_if(frame.rbegin(), frame.rend(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == frame.rend() ? nullptr : &found->second;
}

}  // namespace

Value Scope::get(const std::string& name) const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (const Value* found = find(*frame, name); found != nullptr) return *found;
  }
  for (const Dictionary* frame : {&globals_->set, &globals_->given}) {
    if (const Value* found = find(*frame, name); found != nullptr) return *found;
  }
  return Value::undefined(name);
}

void Scope::set(const std::string& name, Value value) {
  Dictionary& frame = frames_.empty() ? globals_->set : frames_.back();
  for (auto& [its_name, its_value] : frame) {
    if (its_name == name) {
      its_value = std::move(value);
      return;
    }
  }
  frame.emplace_back(name, std::move(value));
}

}  // namespace sapwood::chat
