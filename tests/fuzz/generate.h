// Random models of one operator, several of them in one model, and random graphs.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/check.h"
#include "tests/fuzz/specs.h"

namespace oclc::fuzz {

// What became of a random use of an operator.
struct Single {
  std::string op;
  Case model;           // its results are those of the reference
  std::string failure;  // of reading or of the reference; empty if there was none
  std::string refusal;  // the same, where something is said to be unsupported
  bool fixed = false;   // dimensions were to be symbols, and had to be numbers
};

// `in_turn` as in Draft.
Single random_single(std::uint64_t seed, std::int64_t opset, const Spec& spec, const std::string& prefix, int in_turn = -1);

// All models as one, each as if it were alone. They share an opset; their names differ by the prefixes.
Case joined(const std::vector<const Case*>& cases);

struct RandomGraph {
  Case model;
  std::vector<std::string> ops;
  bool symbolic = false;
  std::vector<Single> broken;  // operators that could not be read or evaluated, alone
};

// 5 to 30 operators of `specs` in one graph. Results are empty: the reference decides.
RandomGraph random_graph_model(std::uint64_t seed, const std::vector<Spec>& specs);

}  // namespace oclc::fuzz
