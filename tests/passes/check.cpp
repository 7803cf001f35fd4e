#include "tests/passes/check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "tests/support/graph_check.h"

namespace oclc {
namespace {

constexpr TextOptions kAllElements{.max_elements = 256};

std::vector<HostTensor> results(const Graph& graph, const Graph& inputs_of) {
  const SymbolValues symbols = small_symbols(inputs_of);
  return evaluate(graph, random_inputs(inputs_of, symbols, 1), symbols);
}

// Without the indentation of the first line, and without empty lines at the ends.
std::string dedented(std::string_view text) {
  while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  const std::size_t indent = text.find_first_not_of(' ');
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min({indent, line.size(), line.find_first_not_of(' ')}));
    if (!line.empty()) out += std::string(line) + "\n";
  }
  return out;
}

}  // namespace

void becomes(PassFunction pass, std::string_view before, std::string_view after) {
  const auto original = parse_graph(before, find_op);
  const auto graph = parse_graph(before, find_op);
  CHECK(pass(*graph, {}));
  CHECK(verify(*graph) == "");
  const std::string found = print_graph(*graph, kAllElements), wanted = dedented(after);
  if (found != wanted && std::getenv("OCLC_UPDATE")) fmt::print(stderr, "{}", found);
  CHECK(found == wanted);
  CHECK_FALSE(pass(*graph, {}));
  CHECK(print_graph(*graph, kAllElements) == found);
  CHECK(difference(results(*graph, *original), results(*original, *original)) == "");
}

void stays(PassFunction pass, std::string_view text) {
  const auto graph = parse_graph(text, find_op);
  const std::string before = print_graph(*graph, kAllElements);
  CHECK_FALSE(pass(*graph, {}));
  CHECK(print_graph(*graph, kAllElements) == before);
}

}  // namespace oclc
