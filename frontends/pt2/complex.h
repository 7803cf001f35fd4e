// Complex tensors: pairs of real ones. Most operators do the same to both parts, and are read twice by the reader of real ones.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/pt2/table.h"

namespace oclc::pt2 {

struct Complex {
  Value *re = nullptr, *im = nullptr;  // im is null for a real tensor
};

using Complexes = std::map<std::string, Complex, std::less<>>;
using ComplexOutputs = std::vector<Complex>;

class ComplexContext;

struct ComplexRow {
  std::string_view op;
  ComplexOutputs (*read)(ComplexContext&) = nullptr;
  std::string_view core = {};
};

// What the reader of an operator of complex tensors works with.
class ComplexContext {
 public:
  // `row`: the operator's row of real tensors, or an empty one.
  ComplexContext(Builder& builder, const ComplexRow& row, const OpRow* real_row, const ProgramNode& node,
                 const ReadSoFar& so_far, const Complexes& complexes);

  Builder& b;
  // The arguments that are no tensors, and the types of the results: those of their parts.
  const AtenContext& arguments() const { return arguments_; }
  AtenContext& arguments() { return arguments_; }
  std::string_view core() const { return row_.core; }
  bool gives_complex() const;  // the first result

  Complex operand(std::string_view name) const;  // a tensor, or a number as a scalar of the result's type
  Value* real_operand(std::string_view name) const;

  enum class Part { re, im };
  // What the reader of real tensors gives for one part of each operand. In the imaginary part, real tensors and numbers that
  // are computed with are 0; indices and masks are as they are.
  Outputs read_part(Part part) const;
  // The same with a part for each of two operands.
  Value* read_parts(std::string_view first, Part of_first, std::string_view second, Part of_second) const;
  bool has_im(std::string_view name) const;

  // The result of the reader of another operator, whose operands are these.
  Value* call(std::string_view op, const std::vector<std::pair<std::string, Value*>>& operands) const;

 private:
  Value* read_real(const OpRow& row, const ProgramNode& node, const Values& values, Outputs* all = nullptr) const;
  const OpRow& real_row() const;

  const ComplexRow& row_;
  const OpRow* real_row_;
  const ProgramNode& node_;
  ReadSoFar so_far_;
  const Complexes& complexes_;
  AtenContext arguments_;
};

// A tensor [.., 2] of real and imaginary parts, and back.
Complex parts_of(Builder& b, Value* pairs);
Value* pairs_of(Builder& b, const Complex& z);

bool is_of_complex(const ProgramNode& node, const Program& program);

// Null if there is none.
const ComplexRow* find_complex_row(std::string_view target);
std::vector<std::string_view> complex_operators();

// The families, one file each.
std::span<const ComplexRow> complex_rows();
std::span<const ComplexRow> fourier_rows();

}  // namespace oclc::pt2
