// A stand-in for libandroid: what android/trace.h declares, writing what it is told to the file
// that ATRACE_SHIM names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

template <typename... Arguments>
void say(const char* format, Arguments... arguments) {
  std::FILE* const file = std::fopen(std::getenv("ATRACE_SHIM"), "a");
  if (file == nullptr) return;
  std::fprintf(file, format, arguments...);
  std::fclose(file);
}

}  // namespace

extern "C" {

bool ATrace_isEnabled() { return std::getenv("ATRACE_SHIM") != nullptr; }
void ATrace_beginSection(const char* name) { say("B %s\n", name); }
void ATrace_endSection() { say("E%s\n", ""); }
#ifdef SAPWOOD_ATRACE_OF_ANDROID_10
void ATrace_beginAsyncSection(const char* name, int32_t cookie) { say("S %s %d\n", name, cookie); }
void ATrace_endAsyncSection(const char* name, int32_t cookie) { say("F %s %d\n", name, cookie); }
void ATrace_setCounter(const char* name, int64_t value) {
  say("C %s %lld\n", name, static_cast<long long>(value));
}
#endif

}  // extern "C"
