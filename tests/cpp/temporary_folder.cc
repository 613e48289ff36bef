#include "temporary_folder.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace sapwood {
namespace {

// Made on first use, removed with everything in it at exit.
class Root {
 public:
  Root() {
    std::string name = (std::filesystem::temp_directory_path() / "sapwood_tests.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      std::perror(name.c_str());
      std::abort();
    }
    path_ = name;
  }
  ~Root() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

std::string temporary_folder() {
  static const Root root;
  static int count = 0;
  const std::filesystem::path folder = root.path() / std::to_string(count++);
  std::filesystem::create_directory(folder);
  return folder.string();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    std::perror(path.c_str());
    std::abort();
  }
}

}  // namespace sapwood
