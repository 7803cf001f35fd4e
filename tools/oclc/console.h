// What the tool prints: results on standard output, everything else on standard error.
#pragma once
#include <string>
#include <string_view>

namespace oclc::tool {

enum class ColorWhen { automatic, always, never };

struct ConsoleState {
  ColorWhen color = ColorWhen::automatic;  // automatic: on a terminal, unless NO_COLOR is set
  bool quiet = false;                      // no warnings
  bool verbose = false;                    // notes
  bool results_to_stderr = false;          // standard output carries the plan
};

// The process's, set by the command line.
ConsoleState& console();

// Names in it may hold anything: what could steer a terminal is escaped, here and in warnings, notes and errors. Fails with
// exit code 6 when standard output cannot take it, quietly when its reader has gone.
void print_result(std::string_view text);
void flush_results();
void print_warning(std::string_view text);
void print_note(std::string_view text);  // with -v
void print_error(std::string_view text);

std::string size_text(double bytes);                               // "12.3 MiB", "4.0 KiB", "17 B"
std::string table_cell(std::string_view text, std::size_t width);  // padded, or cut in the middle

}  // namespace oclc::tool
