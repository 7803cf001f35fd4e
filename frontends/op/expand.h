// From formulas to core operators: terms are values whose axes have the names of indices. bind.cpp knows operands and
// dimensions by their names, expand.cpp walks the formula, index.cpp reads elements at positions, terms.cpp brings terms
// together.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/user_op.h"
#include "frontends/op/custom_op.h"

namespace oclc::custom {

using Names = std::vector<std::string>;

// What an expression stands for: a text or a number known when compiling, else a value, whose last axes are those of `axes`;
// the ones before them are not named, and broadcast.
struct Term {
  Value* value = nullptr;
  double number = 0;
  bool whole = false;  // the number is an integer
  std::optional<std::string> text;
  Names axes;

  bool known() const { return value == nullptr; }
  std::size_t leading() const { return value->type.rank() - axes.size(); }
};

// An operand, a list of numbers or the result of a line; the last dimensions are `dims`.
struct Array {
  Value* value = nullptr;
  Shape dims;
};

// A position that is linear in indices.
struct Linear {
  Expr constant = 0;
  std::map<std::string, Expr> of;  // factors by index, none 0
};

class Expansion {
 public:
  Expansion(Builder& builder, const CustomOp& op, const std::vector<Value*>& inputs, const Attributes& attributes);
  std::vector<Value*> run();

  // Of operators in OpenCL C: use.cpp
  std::vector<Value*> scalar_node();
  std::vector<Value*> body_nodes(Build form);
  std::vector<TensorType> output_types() const;
  std::vector<Expr> space() const;
  UserSpace user_space() const;
  Expr size(const Formula& f) const;

 private:
  std::map<std::string, std::string, std::less<>> literals() const;  // attributes as OpenCL C
  std::int64_t scalar_flops() const;

  // bind.cpp
  void bind(const std::vector<Value*>& inputs);
  void bind_type(const Operand& operand, const Value* value);
  void bind_dims(const Operand& operand, Value*& value, bool names);
  void check_conditions();

  // expand.cpp
  DType type_of(const Operand& operand) const;
  void line(const Line& line);
  Value* result(const Line& line, const Operand* output);
  Value* accumulated(const Line& line, const Operand& output);
  Value* fitted(Value* value, const Operand& output, const Shape& named, const Place& place);
  Term eval(const Formula& f);
  Term name(const Formula& f);
  Term call(const Formula& f);
  Term choice(const Formula& f);
  std::string found_dims() const;
  [[noreturn]] void fail(const Place& place, std::string wanted, std::string found, std::string advice = {}) const;

  // terms.cpp
  Term apply(std::string_view op, std::vector<Term> terms, const Place& place);
  void same_type(std::vector<Term>& terms, std::size_t first, const Place& place);
  Value* materialised(const Term& term, DType dtype, const Place& place);
  Names in_order(const std::set<std::string>& axes) const;
  Value* arranged_to(const Term& term, const Names& order);
  // `value`'s axes are `order`; those of size 1 that an index has more of are repeated.
  Value* spread(Value* value, const Names& order);
  Term reduce(const Formula& f);
  Term sum(const Formula& f, const Names& over);
  Term product(std::vector<Term> factors, const Names& over, const Place& place);

  // index.cpp
  void find_extents(const Formula& f);
  void note_extent(const std::string& index, const Expr& extent, const std::string& about, const Place& place);
  std::optional<Linear> linear(const Formula& f) const;
  Term element(const Formula& f);
  // Cuts what is linear out of the array; positions that are done become plain indices or go.
  struct Positions;
  void cut(const Formula& f, Positions& positions);
  void check_inside(const Linear& position, const Expr& dim, const Formula& f, const Formula& at) const;
  void range(const Linear& position, Expr& low, Expr& high) const;
  Term gathered(Positions& positions);
  Value* ramp(const std::string& index);

  Builder& b_;
  const CustomOp& op_;
  Attributes attributes_;
  std::vector<Value*> fitted_;  // the inputs, under the dimensions of their names
  std::map<std::string, DType, std::less<>> types_;
  std::map<std::string, std::pair<Expr, std::string>, std::less<>> dims_;  // with the operand that it is known from
  std::map<std::string, Array, std::less<>> arrays_;
  std::map<std::string, std::size_t, std::less<>> counts_;  // of operands of variable number
  // Of the line that is read.
  std::map<std::string, std::pair<Expr, std::string>, std::less<>> extents_;
  Names order_;  // indices, those on the left first
  DType number_type_ = DType::f32;
};

}  // namespace oclc::custom
