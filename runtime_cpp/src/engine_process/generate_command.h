// `sapwood_engine generate`: one answer, for shells.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace sapwood {

extern const char* const kGenerateHelp;

// Prints the answer to standard output and its statistics, as a line of JSON, to standard error.
Status generate_command(const std::vector<std::string>& arguments);

}  // namespace sapwood
