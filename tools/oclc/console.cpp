#include "tools/oclc/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "runtime/package/text/unicode.h"
#include "tools/command_line/bytes_text.h"
#include "tools/oclc/failure.h"

namespace oclc::tool {
namespace {

bool colored() {
  if (console().color != ColorWhen::automatic) return console().color == ColorWhen::always;
  const char* off = std::getenv("NO_COLOR");
  return ::isatty(STDERR_FILENO) != 0 && !(off && *off);
}

// A label in colour; on a terminal the line of the progress display is wiped first.
void print_labelled(std::string_view label, int color, std::string_view text) {
  const std::string wipe = ::isatty(STDERR_FILENO) ? "\r\033[K" : "";
  const std::string shown = colored() ? fmt::format("\033[1;{}m{}\033[0m", color, label) : std::string(label);
  const std::string line = fmt::format("{}oclc: {} {}\n", wipe, shown, package::shown(text, true));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

[[noreturn]] void output_failed(int error_number) {
  if (error_number == EPIPE) ::_exit(141);
  io_error("standard output", "cannot write", error_number);
}

}  // namespace

ConsoleState& console() {
  static ConsoleState state;
  return state;
}

void print_result(std::string_view text) {
  std::FILE* to = console().results_to_stderr ? stderr : stdout;
  const std::string shown = package::shown(text, true);
  if (std::fwrite(shown.data(), 1, shown.size(), to) != shown.size() && to == stdout) output_failed(errno);
}

void flush_results() {
  if (std::fflush(stdout) != 0) output_failed(errno);
}

void print_warning(std::string_view text) {
  if (!console().quiet) print_labelled("warning:", 33, text);
}

void print_note(std::string_view text) {
  if (console().verbose) print_labelled("note:", 36, text);
}

void print_error(std::string_view text) { print_labelled("error:", 31, text); }

std::string size_text(double bytes) { return command_line::bytes_text(static_cast<std::uint64_t>(bytes)); }

std::string table_cell(std::string_view text, std::size_t width) {
  if (text.size() <= width) return fmt::format("{:{}}", text, width);
  const std::size_t head = (width - 2) / 2, tail = width - 2 - head;
  return fmt::format("{}..{}", text.substr(0, head), text.substr(text.size() - tail));
}

}  // namespace oclc::tool
