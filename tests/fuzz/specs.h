// Which random uses of each ONNX operator are valid: one row an operator.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "tests/fuzz/draft.h"

namespace oclc::fuzz {

struct Spec {
  std::string_view op;
  int since = 1;  // opsets of the uses that are made
  int until = 23;
  void (*draft)(Draft&) = nullptr;
  bool in_graphs = true;  // and among other operators, not only alone
};

// Operators that are read and have no row, with the reason.
struct Unspecified {
  std::string_view op, reason;
};

std::vector<Spec> all_specs();
std::span<const Unspecified> unspecified();

// The families, one file each.
std::span<const Spec> math_specs();
std::span<const Spec> activation_specs();
std::span<const Spec> movement_specs();
std::span<const Spec> reduction_specs();
std::span<const Spec> window_specs();
std::span<const Spec> other_specs();

}  // namespace oclc::fuzz
