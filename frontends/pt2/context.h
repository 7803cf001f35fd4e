// What the reader of one ATen operator works with: the node's arguments by name, with types, and the builder.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/builder.h"
#include "frontends/pt2/program.h"

namespace oclc::pt2 {

using Values = std::map<std::string, Value*, std::less<>>;
// Of a view the tensor that it shares its storage with and that is no view itself.
using Roots = std::map<std::string, std::string, std::less<>>;
// One value per result of the node, lists of tensors counted one by one; null: a result that nobody may use.
using Outputs = std::vector<Value*>;

class AtenContext;

// How an operator is read.
struct OpRow {
  std::string_view op;  // "aten.add.Tensor"
  Outputs (*read)(AtenContext&) = nullptr;
  std::string_view core = {};  // for readers shared by several operators: the core operator, or a variant
};

// What has been read so far.
struct ReadSoFar {
  const Program& program;
  const Values& values;
  const Roots& roots;
  bool training = false;
};

class AtenContext {
 public:
  AtenContext(Builder& builder, const OpRow& row, const ProgramNode& node, const ReadSoFar& so_far)
      : b(builder), row_(row), node_(node), values_(so_far.values), program_(so_far.program), so_far_(so_far) {}

  Builder& b;

  std::string_view core() const { return row_.core; }
  bool training() const { return so_far_.training; }
  const ReadSoFar& so_far() const { return so_far_; }
  const ProgramNode& node() const { return node_; }

  // Arguments by name. `tensor` throws if it is absent; others give the default.
  const Arg* find(std::string_view name) const;  // null if absent or none
  const Arg& need(std::string_view name) const;  // refused if absent or none
  bool has(std::string_view name) const { return find(name) != nullptr; }
  Value* tensor(std::string_view name) const;
  Value* optional_tensor(std::string_view name) const;
  std::vector<Value*> tensors(std::string_view name) const;           // of a list
  std::vector<Value*> optional_tensors(std::string_view name) const;  // null: none
  double real(std::string_view name, std::optional<double> otherwise = std::nullopt) const;
  Expr size(std::string_view name, std::optional<Expr> otherwise = std::nullopt) const;
  std::int64_t integer(std::string_view name, std::optional<std::int64_t> otherwise = std::nullopt) const;
  bool flag(std::string_view name, bool otherwise = false) const;
  std::string text(std::string_view name, std::string otherwise = {}) const;
  Shape sizes(std::string_view name) const;
  Ints integers(std::string_view name, Ints otherwise = {}) const;
  // One number for all, or one each.
  Ints repeated(std::string_view name, std::size_t count, std::int64_t otherwise) const;
  std::vector<double> reals(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name = "dtype") const;

  // The tensor, or the number as a scalar of `dtype`.
  Value* operand(std::string_view name, DType dtype) const;
  // Numbers of 16 bits as those of 32: what is made of several operators here rounds its result once, as torch's does.
  Value* widened(Value* x) const;
  // The type that torch computes in with these arguments: tensors with axes count before those without, and these before
  // numbers, unless a later one is of a higher kind (bool, integers, floats).
  DType common_dtype(std::initializer_list<std::string_view> names) const;

  // Types of the results as torch found them.
  const TensorType& result(std::size_t i = 0) const;
  std::size_t results() const { return names_of_results().size(); }
  bool wants(std::size_t i) const;  // somebody may use the result

  std::int64_t axis(std::int64_t axis, std::size_t rank) const;
  // The dimensions named; all if there is none.
  Ints axes(std::string_view name, std::size_t rank) const;

  [[noreturn]] void refuse(std::string wanted, std::string found = {}, std::string advice = {}) const;

 private:
  std::vector<std::string> names_of_results() const;

  const OpRow& row_;
  const ProgramNode& node_;
  const Values& values_;
  const Program& program_;
  ReadSoFar so_far_;
};

// A scalar of the type of `like`.
inline Value* number(AtenContext& c, const Value* like, double value) { return c.b.scalar(like->type.dtype, value); }

// torch's promotion of two element types.
DType promoted(DType a, DType b);

}  // namespace oclc::pt2
