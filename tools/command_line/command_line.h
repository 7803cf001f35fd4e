// What the command lines of our programs have in common: checks of numbers, and what is said of a wrong line.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>     // defines what App.hpp leaves undefined
#include <CLI/Formatter.hpp>  // the same
#include <string>
#include <vector>

namespace oclc::command_line {

// Checks of a number given to an option; CLI11's own print the largest double with all of its digits.
CLI::Validator above_zero();
CLI::Validator not_negative();
CLI::Validator in_range(int lo, int hi);
CLI::Validator one_of(std::vector<std::string> words);

// What was wrong, as one sentence. Options that are not known are named in the order of the line, each with the known one that
// is nearest to it.
std::string explained(const CLI::App& app, const CLI::ParseError& error);

}  // namespace oclc::command_line
