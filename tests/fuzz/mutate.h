// Random changes to an input: of JSON values where it is JSON, else of bytes.
#pragma once

#include <random>
#include <string>
#include <string_view>

// Changing bytes alone, nearly every mutant of a JSON text dies in the parser; changed values reach
// what lies behind it. One mutant in four is changed bytewise all the same.
std::string mutate(std::string_view input, std::mt19937_64& random);
