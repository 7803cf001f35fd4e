// UTF-8 and the case of letters, independent of any locale.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace oclc::package {

// The code point at `at`, which moves behind it. A byte that begins no well-formed sequence counts as U+FFFD by itself.
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_code_point(std::string& text, char32_t c);

// Simple case mapping, one code point to one: Latin with its extensions A and Additional, Greek, Cyrillic, Armenian and the
// full-width Latin letters. Other code points are their own upper and lower case.
char32_t to_lower(char32_t c);
char32_t to_upper(char32_t c);
// Of every code point; bytes that are no UTF-8 stay as they are.
std::string lower(std::string_view text);
std::string upper(std::string_view text);

// Text for people: what could steer a terminal or turn the direction of writing, and bytes that are no UTF-8, as \xHH byte by
// byte. With `lines`, the ends of lines and tabs stay.
std::string shown(std::string_view text, bool lines = false);

}  // namespace oclc::package
