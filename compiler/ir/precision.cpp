#include "compiler/ir/precision.h"

#include <fmt/format.h>

#include <string>

#include "compiler/support/error.h"

namespace oclc {
namespace {

struct Row {
  std::string_view name;
  Precision precision;
};

// In the order of the enumeration.
constexpr Row kRows[] = {
    {"strict",
     {.contract = Contract::strict, .products = Products::fma, .bf16_products = 0, .blocked_summation = true, .error = 0}},
    {"fp32", {.contract = Contract::fp32}},
    {"fast", {.contract = Contract::fast, .bf16_products = 3, .error = 2e-5}},
    {"tf32", {.contract = Contract::tf32, .products = Products::rounded, .bf16_products = 3, .error = 0}},
    {"bf16", {.contract = Contract::bf16, .bf16_products = 1, .error = 0}},
};

}  // namespace

Precision Precision::of_integers() const {
  Precision exact = *this;
  exact.contract = Contract::strict;
  exact.bf16_products = 1;
  exact.blocked_summation = false;
  exact.error = 0;
  return exact;
}

std::string_view name_of(Contract contract) { return kRows[static_cast<std::size_t>(contract)].name; }

std::vector<std::string> contract_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

Contract find_contract(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.precision.contract;
  }
  throw CompileError({.stage = "usage",
                      .wanted = fmt::format("a contract of precision: {}", fmt::join(contract_names(), ", ")),
                      .found = fmt::format("'{}'", name),
                      .advice = "16-bit activations of a training run are --mixed f16 or --mixed bf16",
                      .exit_code = ExitCode::usage});
}

Precision precision_under(Contract contract, bool trains) {
  Precision precision = kRows[static_cast<std::size_t>(contract)].precision;
  precision.blocked_summation = precision.blocked_summation || trains;
  return precision;
}

}  // namespace oclc
