// What the tokenizer asks of characters, answered as Hugging Face's library answers it (see
// scripts/make_unicode_tables).
#pragma once

#include <string>
#include <string_view>

namespace sapwood {

bool is_letter(char32_t character);  // \p{L}
bool is_number(char32_t character);  // \p{N}
bool is_space(char32_t character);   // \s
bool is_digit(char32_t character);   // the pre-tokenizer "Digits"; knows more than \p{N}

// Canonical composition (Unicode Standard Annex 15, form C) of valid UTF-8.
std::string normalize_nfc(std::string_view text);

}  // namespace sapwood
