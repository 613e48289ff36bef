// Folders for tests, gone when the process ends.
#pragma once

#include <string>

namespace sapwood {

// A new empty folder, below one that belongs to this process.
std::string temporary_folder();

// Replaces a file's contents; ends the process if it cannot be written.
void write_text(const std::string& path, const std::string& text);

}  // namespace sapwood
