// Man pages and shell completion out of the help texts, which are the tables of options.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oclc::command_line {

// The help of a program or of one of its commands. Its form:
//   usage: oclc bench MODEL... [options]      (and more lines of usage, indented)
//   What it does, in a paragraph, which may be missing.
//
//   Heading
//     --name VALUE, -x     what it means, two blanks behind the names; lines that are indented further go on with it
struct Manual {
  std::string_view command;  // empty: the program itself
  std::string_view help;
};

struct HelpOption {
  std::vector<std::string> names;  // "-o", "--output"
  std::string value;               // "FILE"; empty: a flag
  std::string text;
};
// The options of a help text, in its order. Of a row that names several, each has the row's text.
std::vector<HelpOption> options_of(std::string_view help);

// A page of section 1. `what`: the line under NAME.
std::string man_page(std::string_view program, std::string_view version, std::string_view what,
                     std::span<const Manual> manuals);

// A script for bash, zsh or fish; empty if `shell` is none of them.
std::string completion(std::string_view shell, std::string_view program, std::span<const Manual> manuals);

}  // namespace oclc::command_line
