#include "frontends/onnx/fail.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace oclc::onnx {
namespace {

constexpr std::size_t kLongestText = 120;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= kLongestText) {
      out += "...";
      break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

void fail(std::string wanted, std::string found, std::string advice, ExitCode code) {
  throw CompileError({.stage = "import",
                      .wanted = std::move(wanted),
                      .found = std::move(found),
                      .advice = std::move(advice),
                      .exit_code = code});
}

void NearestName::offer(std::string_view candidate) {
  // Long names are compared by their first part; this is only a hint.
  constexpr std::size_t kCompared = 200;
  const std::string_view a = name_.substr(0, kCompared), b = candidate.substr(0, kCompared);
  const std::size_t least = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (candidate.empty() || least >= distance_) return;
  const std::size_t distance = edit_distance(a, b);
  if (distance < distance_) {
    distance_ = distance;
    best_ = candidate;
  }
}

std::string NearestName::hint() const {
  if (best_.empty() || distance_ > std::max<std::size_t>(2, name_.size() / 3)) return {};
  return fmt::format("is it '{}'?", printable(best_));
}

}  // namespace oclc::onnx
