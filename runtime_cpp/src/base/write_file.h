// Whole files, all or nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sapwood {

// Writes under a temporary name beside it, then renames: on failure, kInvalidArgument, what was
// there before is still there and nothing half-written is left.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace sapwood
