// ExecuTorch says what went wrong in its log and returns a number. This keeps what it says.
#pragma once

#include <executorch/runtime/core/error.h>

#include <string>

#include "base/status.h"

namespace sapwood::executorch {

// While it lives, errors that ExecuTorch logs in this thread are kept instead of printed. Other
// threads' go where they went before.
class KeptLog {
 public:
  KeptLog();
  ~KeptLog();
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;

  // What came back, as a status: `where`, then the first thing that was logged, or else the error's
  // own name.
  Status status(::executorch::runtime::Error error, Code code, const std::string& where) const;

 private:
  std::string first_;
  std::string* before_;
};

}  // namespace sapwood::executorch
