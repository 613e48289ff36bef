// What every host asks of its options and of a bundle before it opens a model.
#pragma once

#include <string>

#include "base/status.h"
#include "model/bundle.h"

namespace sapwood {

// kInvalidArgument naming what is out of range: 1 to 256 threads, 1 to 4096 rows of one pass.
Status check_host_options(int threads, int max_rows);

// The path of a bundle's graph: `file` as its manifest has it, empty where there is none. what,
// format: what it is called, and the --format that exports it, for messages. kUnsupported: the
// bundle was exported without; kNotFound: the file is gone.
Result<std::string> graph_path(const Bundle& bundle, const std::string& file, const char* what,
                               const char* format);

}  // namespace sapwood
