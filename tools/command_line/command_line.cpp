#include "tools/command_line/command_line.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "compiler/support/nearest.h"

namespace oclc::command_line {
namespace {

CLI::Validator number_check(const std::string& wanted, std::function<bool(double)> fits) {
  return {[wanted, fits = std::move(fits)](std::string& text) {
            double value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool good = error == std::errc() && end == text.data() + text.size() && fits(value);
            return good ? std::string() : "wanted " + wanted + ", found '" + text + "'";
          },
          ""};
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

CLI::Validator above_zero() {
  return number_check("a number above 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return number_check("a number of at least 0", [](double value) { return value >= 0; });
}

CLI::Validator in_range(int lo, int hi) {
  return number_check("a number from " + std::to_string(lo) + " to " + std::to_string(hi),
                      [lo, hi](double value) { return value >= lo && value <= hi; });
}

CLI::Validator one_of(std::vector<std::string> words) {
  return {[words = std::move(words)](std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
            std::string known;
            for (const std::string& word : words) known += (known.empty() ? "" : "|") + word;
            const std::string meant = did_you_mean(text, words);
            return "wanted " + known + ", found '" + text + "'" + (meant.empty() ? "" : "; " + meant);
          },
          ""};
}

std::string explained(const CLI::App& app, const CLI::ParseError& error) {
  if (!dynamic_cast<const CLI::ExtrasError*>(&error)) return error.what();
  std::string options, others;
  for (const std::string& word : app.remaining()) {
    if (word.size() < 2 || word.front() != '-') {
      others += (others.empty() ? "" : " ") + ("'" + word + "'");
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    const std::string meant = did_you_mean(name, names_of(app));
    options += (options.empty() ? "" : "; ") + ("unknown option '" + name + "'") + (meant.empty() ? "" : ", " + meant);
  }
  if (others.empty()) return options;
  return (options.empty() ? "" : options + "; ") + "not expected here: " + others;
}

}  // namespace oclc::command_line
