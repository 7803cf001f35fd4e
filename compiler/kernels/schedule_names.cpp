#include "compiler/kernels/schedule_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/ir/text.h"

namespace oclc {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 8> kAnchorNames = {"pointwise",      "reduce",          "row", "contraction", "scan",
                                                          "winograd_input", "winograd_output", "code"};
constexpr std::array<std::string_view, 8> kCombineNames = {"sum",          "product",     "max",          "min",
                                                           "argmax_first", "argmax_last", "argmin_first", "argmin_last"};
constexpr std::array<std::string_view, 5> kKindNames = {"arena", "constant", "input", "output", "state"};

template <class Value, std::size_t kCount>
std::optional<Value> named(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Value>(found - names.begin()));
}

}  // namespace

std::string_view name_of(Anchor anchor) { return kAnchorNames.at(static_cast<std::size_t>(anchor)); }
std::string_view name_of(Stage::Combine combine) { return kCombineNames.at(static_cast<std::size_t>(combine)); }
std::string_view name_of(BufferKind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }
std::optional<Anchor> anchor_named(std::string_view name) { return named<Anchor>(kAnchorNames, name); }
std::optional<Stage::Combine> combine_named(std::string_view name) { return named<Stage::Combine>(kCombineNames, name); }
std::optional<BufferKind> buffer_kind_named(std::string_view name) { return named<BufferKind>(kKindNames, name); }

std::string sources_text(const std::vector<std::string>& sources) {
  std::vector<std::string> names;
  for (const std::string& source : sources) names.push_back(quoted(source));
  return names.empty() ? "" : fmt::format(" of {}", fmt::join(names, ", "));
}

}  // namespace oclc
