#include "operators/executorch/log.h"

#include <executorch/runtime/platform/platform.h>

#include <mutex>

namespace sapwood::executorch {
namespace {

using ::executorch::runtime::PalImpl;

thread_local std::string* kept = nullptr;
pal_emit_log_message_method forward = nullptr;

void emit(et_timestamp_t timestamp, et_pal_log_level_t level, const char* file,
          const char* function, size_t line, const char* message, size_t length) {
  if (kept == nullptr) {
    if (forward != nullptr) forward(timestamp, level, file, function, line, message, length);
    return;
  }
  // The first error is the cause; those after it say where it went.
  const bool error = level == et_pal_log_level_t::kError || level == et_pal_log_level_t::kFatal;
  if (error && kept->empty()) kept->assign(message, length);
}

void take_log() {
  static std::once_flag once;
  std::call_once(once, [] {
    forward = ::executorch::runtime::get_pal_impl()->emit_log_message;
    (void)::executorch::runtime::register_pal(PalImpl::create(&emit, "sapwood"));
  });
}

}  // namespace

KeptLog::KeptLog() : before_(kept) {
  take_log();
  kept = &first_;
}

KeptLog::~KeptLog() { kept = before_; }

Status KeptLog::status(::executorch::runtime::Error error, Code code,
                       const std::string& where) const {
  if (error == ::executorch::runtime::Error::Ok) return Status::okay();
  return Status(code,
                where + ": " + (first_.empty() ? ::executorch::runtime::to_string(error) : first_));
}

}  // namespace sapwood::executorch
