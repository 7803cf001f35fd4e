// Sizes for people.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

namespace oclc::command_line {

// "12.3 MiB", "4.0 KiB" below one, "17 B" below that.
inline std::string bytes_text(std::uint64_t bytes) {
  char text[32];
  if (bytes < 1024)
    std::snprintf(text, sizeof text, "%u B", static_cast<unsigned>(bytes));
  else if (bytes < (1u << 20))
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  else
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

}  // namespace oclc::command_line
