// sapwood_engine: the engine as a program of its own (docs/engine-protocol.md).
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine_process/generate_command.h"
#include "engine_process/server.h"

namespace {

constexpr std::string_view kHelp =
    R"(Usage: sapwood_engine serve
       sapwood_engine generate --bundle FOLDER --prompt TEXT [options]
       sapwood_engine --version

serve     speaks the engine's protocol on standard input and output
generate  prints one answer; its statistics go to standard error
)";

int refuse(const std::string& message) {
  std::fprintf(stderr, "sapwood_engine: %s\n", message.c_str());
  return 2;
}

// A core file would hold whatever is in memory: prompts and answers.
void leave_no_core_file() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = 0;
  setrlimit(RLIMIT_CORE, &limit);
}

// Ends at once, whatever the other threads compute: a process whose parent has gone must go too.
int serve() {
  signal(SIGPIPE, SIG_IGN);
  std::string why;
  // Never destroyed: that would wait for a pass that is running.
  auto* server = new sapwood::Server(STDIN_FILENO, STDOUT_FILENO);
  const sapwood::ServeEnd end = server->run(&why);
  if (!why.empty()) std::fprintf(stderr, "sapwood_engine: %s\n", why.c_str());
  _exit(static_cast<int>(end));
}

}  // namespace

int main(int count, char** values) {
  leave_no_core_file();
  const std::vector<std::string> arguments(values + 1, values + count);
  if (arguments.empty()) return refuse("say serve or generate; --help explains them");
  const std::string& command = arguments[0];
  if (command == "--help" || command == "-h") {
    std::fwrite(kHelp.data(), 1, kHelp.size(), stdout);
    std::fputs(sapwood::kGenerateHelp, stdout);
    return 0;
  }
  if (command == "--version") {
    std::printf("sapwood_engine %s, protocol %d\n", sapwood_version(), sapwood::kProtocolVersion);
    return 0;
  }
  if (command == "serve" && arguments.size() == 1) return serve();
  if (command != "generate") return refuse("no such command: " + command + "; --help lists them");
  const sapwood::Status status =
      sapwood::generate_command({arguments.begin() + 1, arguments.end()});
  return status.ok() ? 0 : refuse(status.message());
}
