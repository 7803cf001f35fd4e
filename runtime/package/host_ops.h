// Operators that the host computes: those on texts, and those that order and group. The compiler's reference and the runtime
// run the same functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "plan_generated.h"

namespace oclc::package {

// A tensor in host memory, row-major: numbers in `data`, or texts (UTF-8).
struct HostValue {
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
  std::vector<std::string> texts;  // of type string_ only

  std::size_t elements() const;
};

// What an operator is told beside its operands.
struct HostSettings {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
};

// Values for which an operator has no result.
struct HostOpError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Types of operands: s texts, n numbers or bool, a texts or numbers, i 64-bit integers, b bool.
struct HostOp {
  std::string_view name;
  std::string_view formula;  // documentation, one line
  std::string_view inputs, outputs;
  std::string_view integers;  // names of the integer settings, separated by blanks
  std::string_view texts;     // name of the list of texts, or empty
  // What is wrong with settings of the right number, or empty.
  std::string (*problem)(const HostSettings& settings);
  // Fills the outputs, whose types and shapes are set. HostOpError if the inputs or the shapes do not fit.
  void (*run)(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);
};

std::span<const HostOp> host_ops();
const HostOp* find_host_op(std::string_view name);  // null if there is none
bool accepts(char kind, plan::DType dtype);         // of HostOp::inputs and outputs
std::size_t count_words(std::string_view names);

// Checks the number of settings and what they are: empty if all is well, else what is wrong.
std::string problem_of(const HostOp& op, const HostSettings& settings);

}  // namespace oclc::package
