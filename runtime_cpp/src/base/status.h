// Errors without exceptions.
//
// Every fallible function returns Status or Result<T>. A message is one line for a person: what was
// wrong, where, and what to do. Example:
//
//   Result<Bundle> bundle = open_bundle(path);
//   if (!bundle.ok()) return bundle.status();
//   use(bundle.value());
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace sapwood {

enum class Code {
  kOk = 0,
  kInvalidArgument,  // the caller's mistake: an option, a shape, a prompt that is too long
  kNotFound,         // a file or an entry that should be there is not
  kCorrupt,          // a file says something that cannot be true
  kUnsupported,      // well formed, but not something this build or machine can do
  kExhausted,        // no slot, no memory, no disk space left
  kCancelled,        // stopped because it was asked to
  kInternal,         // a bug of ours
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status okay() { return Status(); }
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit on purpose
    assert(!status_.ok() && "a Result without a value needs an error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// Leaves the enclosing function with the error of `expression`, if it has one.
#define SAPWOOD_TRY(expression)                              \
  do {                                                       \
    ::sapwood::Status sapwood_try_status = (expression);     \
    if (!sapwood_try_status.ok()) return sapwood_try_status; \
  } while (false)

}  // namespace sapwood
