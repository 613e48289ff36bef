#include "trace/system_trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace sapwood {
namespace {

// Names are literals, so they end in a 0.
const char* name_of(TraceName name) { return trace_name(name).data(); }

template <typename Function>
void look_up(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
}

int open_marker() {
  if (const char* file = std::getenv("SAPWOOD_TRACE_MARKER"); file != nullptr && *file != 0) {
    return open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
  }
  // Any Linux has these files; on a desktop what is written there would be in nobody's way, and
  // nobody's wish.
  if (std::getenv("ANDROID_ROOT") == nullptr) return -1;
  for (const char* file :
       {"/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker"}) {
    if (const int descriptor = open(file, O_WRONLY | O_APPEND | O_CLOEXEC); descriptor >= 0)
      return descriptor;
  }
  return -1;
}

}  // namespace

ATraceFunctions load_atrace(const char* library) {
  ATraceFunctions found;
  void* const handle = dlopen(library, RTLD_NOW);  // kept for as long as the process lives
  if (handle == nullptr) return found;
  look_up(handle, "ATrace_isEnabled", &found.is_enabled);
  look_up(handle, "ATrace_beginSection", &found.begin_section);
  look_up(handle, "ATrace_endSection", &found.end_section);
  look_up(handle, "ATrace_beginAsyncSection", &found.begin_async_section);
  look_up(handle, "ATrace_endAsyncSection", &found.end_async_section);
  look_up(handle, "ATrace_setCounter", &found.set_counter);
  return found;
}

bool ATrace::begin_step(int32_t step, int32_t mode) {
  if (!functions_.is_enabled()) return false;
  count("step", step);
  count("mode", mode);
  return true;
}

void ATrace::begin(TraceName name, int32_t cookie) {
  if (functions_.has_async()) {
    functions_.begin_async_section(name_of(name), cookie);
  } else {
    functions_.begin_section(name_of(name));
  }
}

void ATrace::end(TraceName name, int32_t cookie) {
  if (functions_.has_async()) {
    functions_.end_async_section(name_of(name), cookie);
  } else {
    functions_.end_section();
  }
}

void ATrace::count(const char* name, int64_t value) {
  if (functions_.has_async()) functions_.set_counter(name, value);
}

TraceMarker::TraceMarker(int descriptor) : descriptor_(descriptor), process_(getpid()) {}

TraceMarker::~TraceMarker() { close(descriptor_); }

// One line is one event, so it is one write.
template <typename... Arguments>
void TraceMarker::write_line(const char* format, Arguments... arguments) {
  std::array<char, 128> line;
  const int length = std::snprintf(line.data(), line.size(), format, arguments...);
  if (length <= 0 || static_cast<size_t>(length) >= line.size()) return;
  const bool taken = write(descriptor_, line.data(), static_cast<size_t>(length)) == length;
  recorded_.store(taken, std::memory_order_relaxed);
}

bool TraceMarker::begin_step(int32_t step, int32_t mode) {
  const bool looks = steps_.fetch_add(1, std::memory_order_relaxed) % kLooks == 0;
  if (!looks && !recorded_.load(std::memory_order_relaxed)) return false;
  count("step", step);
  if (!recorded_.load(std::memory_order_relaxed)) return false;
  count("mode", mode);
  return true;
}

// The lines of libcutils' trace.h: S and F are the begin and the end of an asynchronous section, C
// is a counter.
void TraceMarker::begin(TraceName name, int32_t cookie) {
  write_line("S|%d|%s|%d\n", process_, name_of(name), cookie);
}

void TraceMarker::end(TraceName name, int32_t cookie) {
  write_line("F|%d|%s|%d\n", process_, name_of(name), cookie);
}

void TraceMarker::count(const char* name, int64_t value) {
  write_line("C|%d|%s|%lld\n", process_, name, static_cast<long long>(value));
}

std::shared_ptr<SystemTrace> open_system_trace() {
  const ATraceFunctions functions = load_atrace();
  if (functions.usable()) return std::make_shared<ATrace>(functions);
  const int marker = open_marker();
  return marker >= 0 ? std::make_shared<TraceMarker>(marker) : nullptr;
}

const std::shared_ptr<SystemTrace>& system_trace() {
  static const std::shared_ptr<SystemTrace> opened = open_system_trace();
  return opened;
}

}  // namespace sapwood
