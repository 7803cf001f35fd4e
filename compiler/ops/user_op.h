// Operators that users bring as OpenCL C (frontends/op), beside those of the list: a function of elements, or a body over an
// index space. They live as long as the process, so that graphs and schedules may name them; equal ones are one.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/op_def.h"

namespace oclc {

// How a body reads or writes an operand.
struct UserOperand {
  std::string name;
  std::size_t rank = 0;
  bool element = true;    // by positions
  bool pointer = false;   // by a pointer to all of it: it lies in memory, row-major
  bool variable = false;  // all further inputs of the node; the first position says which
};

// Statements of OpenCL C for one point of the index space. What they call is defined by code generation:
//   OCLC_ID_<k>                          the point's coordinates
//   OCLC_LOAD_<x>(call, positions..)     an element of an input; `call` counts the text's calls from 1
//   OCLC_STORE_<y>(call, positions.., v)
//   OCLC_POINTER_<x>  OCLC_HAS_<x>  OCLC_COUNT_<x>
// Dimensions and attributes stand there under their names.
struct UserBody {
  std::string text;
  std::vector<UserOperand> inputs, outputs;
  std::vector<std::uint32_t> group;  // work-items of a group along the last dimensions of the space; empty: any number
  // Every position is checked: the last output has a number for each point, 0 or the first call that was outside.
  bool checked = false;
  bool ragged = true;  // uses of several sizes may share a launch
};

// An array in local memory.
struct UserLocal {
  std::string type, name;
  std::int64_t elements = 0;
};

// What sizes and attributes of one node give.
struct UserSpace {
  std::vector<Expr> extents;
  std::vector<std::pair<std::string, Expr>> dims;
  std::vector<std::string> constants;  // of attributes: "const float alpha = 1e-6f;"
  std::vector<UserLocal> locals;
};

struct UserOp : OpDef {
  std::string own_name;  // that of OpDef; ends with a digest of what it says
  std::string title;     // "domain.Name", for people
  bool doubles = false;  // its text computes with f64; the host does so anyway
  // A function of elements: OpenCL C in which a, b, c, .. stand for the operands.
  ScalarOp own_scalar;
  std::string own_text;
  std::optional<UserBody> body;
  std::vector<std::pair<std::size_t, std::size_t>> inplace;  // outputs of a body that may lie where an input does

  std::function<std::vector<TensorType>(const Node&)> types;
  std::function<std::vector<Value*>(Builder&, const Node&, const std::vector<Value*>& inputs)> reference;       // null: none
  std::function<std::vector<Value*>(Builder&, const Node&, std::span<Value* const> gradients)> differentiated;  // null: none
  std::function<Expr(const Node&)> flops;                                                                       // null: 0
  std::function<std::optional<Expr>(const Node&)> bytes;  // null or nothing: each operand once
  std::function<UserSpace(const Node&)> space;            // of a body
};

// Takes the operator, or gives the one of its name that there is. Sets the members of OpDef from the others.
const UserOp& keep_op(std::unique_ptr<UserOp> op);
const UserOp* find_user_op(std::string_view name);
const UserOp* as_user_op(const OpDef& def);  // null: an operator of the list
inline const UserBody* body_of(const Node& node) {
  const UserOp* own = as_user_op(*node.op);
  return own && own->body ? &*own->body : nullptr;
}
// The operand of a body that is input `i` of its node.
const UserOperand& operand_of_input(const UserBody& body, std::size_t i);

// OpenCL C that operators call, before all kernels: functions, constants and macros whose names begin with `prefix`.
void keep_code(const std::string& prefix, std::string text);
// The code of all prefixes that words of `source` begin with.
std::string user_code_for(std::string_view source);
inline constexpr std::string_view kUserPrefix = "ocl_op_";

}  // namespace oclc
