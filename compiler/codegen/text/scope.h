// Text of nested loops in which every node of a kernel's DAG is computed as far out as its operands allow.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/text/c_numbers.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// How a kernel's values are written as C: which axis is a vector of lanes, if any, and which integer type indices have.
struct EmitMode {
  std::string vector_axis;  // empty: scalars only
  int width = 1;
  bool wide_index = false;  // long instead of int
  std::string lanes_left;   // vectors may reach beyond the last column: C text of how many lanes are inside; empty: they do not
  bool streams = false;     // vectors of floats are stored past the caches
  bool aligned = false;     // vectors start at multiples of their width, and so do buffers
  // Names of rows as long as the vector axis, by their elements' value: what a vector outside a guard is read from. Pointers to
  // rows are then chosen outside the loop over vectors.
  std::map<double, std::string> outside;
};

// A load of neighbours along `axis` of which all or none lie inside its guard.
bool is_row_load(const Kernel& kernel, const ScalarNode& node, const std::string& axis);

class Emitter {
 public:
  Emitter(const Kernel& kernel, EmitMode mode);

  void open(const std::string& header, const std::set<std::string>& axes);  // "for (...)" line, and the axes it makes available
  void close();
  void line(const std::string& text);
  // Text of a node's value, emitting what it needs. Vectors if it varies along the vector axis.
  std::string value(NodeId id);
  // Declares the node's value as `text` in the current scope.
  void define(NodeId id, const std::string& text) { declare(id, scopes_.size() - 1, text); }
  // The value as a vector of the mode's width, broadcast if it is uniform.
  std::string vector_value(NodeId id);
  std::string index(const Expr& e);
  // All conditions of a guard, joined.
  std::string condition(const std::vector<Expr>& guard);
  bool is_vector(NodeId id) const { return mode_.width > 1 && depends(id, mode_.vector_axis); }
  bool depends(NodeId id, const std::string& axis) const {
    return dependencies_[static_cast<std::size_t>(id)].count(axis) != 0;
  }
  // Declares the result of a stage: `name` holds it from here on in the current scope.
  void stage_done(int stage, const std::string& name, bool vector);
  void set_vector_axis(std::string axis, int width);
  const EmitMode& mode() const { return mode_; }
  std::string_view index_type() const { return mode_.wide_index ? "long" : "int"; }
  std::string vector_type(DType dtype) const;
  void store(const Store& store);
  // What a store writes, before it is rounded to the type in memory.
  std::string stored_value(const Store& store);
  std::string text() const;

 private:
  struct Scope {
    std::vector<std::string> lines;
    std::set<std::string> axes;
    std::map<NodeId, std::string> names;
    std::map<NodeId, std::string> rows;  // pointers to what loads read along the vector axis
  };
  std::string compute(NodeId id, std::size_t scope);
  std::string load_text(NodeId id, bool vector);
  bool is_aligned(const Expr& index) const;  // a vector from there on can be read and written as one
  std::optional<NodeId> multiplied_with_its_sigmoid(const ScalarNode& node) const;
  std::string apply_text(NodeId id, bool vector);
  std::string declare(NodeId id, std::size_t scope, const std::string& text);
  std::size_t scope_for(NodeId id) const { return scope_for(dependencies_[static_cast<std::size_t>(id)]); }
  std::size_t scope_for(std::set<std::string> missing) const;
  std::string row_of(NodeId id);  // empty: the load has no row pointer
  std::string argument(NodeId id, bool vector);
  NodeId unrounded(NodeId id, DType dtype) const;

  const Kernel& kernel_;
  EmitMode mode_;
  std::vector<std::set<std::string>> dependencies_;
  std::vector<int> uses_;
  int lane_arrays_ = 0;
  std::vector<Scope> scopes_;
  std::map<int, std::pair<std::string, std::size_t>> stages_;  // name, scope depth
};

}  // namespace oclc
