// The first process of the machine that scripts/test_vm boots: mounts what tests look at, runs
// /tests with the arguments in /arguments, says how that ended, and switches the machine off. What
// the kernel is given as NAME=VALUE and does not know itself is the tests' environment.
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

bool mount_at(const char* path, const char* type) {
  mkdir(path, 0755);
  if (mount(type, path, type, 0, nullptr) == 0) return true;
  std::printf("init: %s: %s\n", path, std::strerror(errno));
  return false;
}

int run(const char* path, const std::vector<std::string>& arguments) {
  std::vector<char*> pointers{const_cast<char*>(path)};
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execv(path, pointers.data());
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 126;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main() {
  std::vector<std::string> arguments;
  std::ifstream lines("/arguments");
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) arguments.push_back(line);
  }
  const bool ready = mount_at("/proc", "proc") && mount_at("/sys", "sysfs") &&
                     mount_at("/dev", "devtmpfs") && mount_at("/tmp", "tmpfs");
  std::printf("init: tests ended with status %d\n", ready ? run("/tests", arguments) : 125);
  std::fflush(stdout);
  sync();
  reboot(RB_POWER_OFF);
}
