// An exported program as it is written: nodes of ATen operators with named arguments, and the types of their tensors.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/tensor.h"

namespace oclc::pt2 {

// An argument of a node, or one of its results.
struct Arg {
  enum class Kind { none, tensor, integer, real, complex, boolean, text, dtype, list, other };
  Kind kind = Kind::none;
  std::string name{};  // of a tensor, or the text
  Expr integer{};      // also 0 or 1 of a boolean
  double real = 0, imaginary = 0;
  DType dtype = DType::f32;
  std::vector<Arg> items{};

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_number() const { return is(Kind::integer) || is(Kind::real) || is(Kind::boolean); }
};

struct ProgramNode {
  std::string name;    // of the node
  std::string module;  // path of the module that it stands in: "layer1.0.conv1"; may be empty
  std::string target;  // "aten.conv2d.default"
  std::vector<std::pair<std::string, Arg>> arguments;
  std::vector<Arg> results;  // of kind tensor, list of tensors, or others
};

// A placeholder of the graph.
struct ProgramInput {
  enum class Kind { user, parameter, buffer, constant };
  Kind kind = Kind::user;
  std::string name;      // in the graph
  std::string of_model;  // "layer1.0.conv1.weight"; of users' inputs: their name
  bool tensor = true;    // false: a number, whose value the graph holds as a symbol or not at all
};

struct ProgramOutput {
  Arg value;
  std::string mutated;  // name of the buffer whose new value it is; empty: a result
};

// How a tensor lies in its storage: how many elements neighbours along each axis are apart, and where the first element stands.
struct Layout {
  Shape strides;
  Expr offset;
};

struct Program {
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramNode> nodes;
  std::map<std::string, TensorType, std::less<>> tensors;       // types by name; of complex tensors those of a part
  std::set<std::string, std::less<>> complex;                   // names of complex tensors
  std::map<std::string, std::string, std::less<>> odd_tensors;  // those of a type that the compiler lacks, and why
  std::map<std::string, Layout, std::less<>> layouts;           // by name, where the program says it
  std::vector<Expr> symbols;                                    // in order of their names
};

// `dims`: values of symbols by name. CompileError (import) if the text is no such program, or is of another major version of
// the schema, or if `dims` names a symbol that it lacks.
Program parse_program(std::string_view json, const std::map<std::string, std::int64_t>& dims = {});

// torch's number of an element type; nothing for types that the compiler lacks (complex, quantized).
std::optional<DType> dtype_of_torch(std::int64_t number);
// The type of the parts of a complex one; nothing for others.
std::optional<DType> part_of_torch(std::int64_t number);

// Bounds of symbols by name: [low, high].
using Ranges = std::map<std::string, std::pair<std::int64_t, std::int64_t>, std::less<>>;

// An expression as sympy's srepr writes it: "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))".
// CompileError (import) for anything else.
// A symbol whose range is one number is that number.
Expr parse_sympy(std::string_view text, const Ranges& ranges);

[[noreturn]] void fail(std::string wanted, std::string found = {}, std::string advice = {});

}  // namespace oclc::pt2
