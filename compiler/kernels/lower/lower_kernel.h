// Lowers one group of nodes to a Kernel: axes from the anchor, index maps for movement, loads for what is stored, a DAG for the
// rest.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/kernels/fusion/group.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// Storage of a value that is in memory when the kernel runs, or null if the kernel has to compute it.
using FindStorage = std::function<const Storage*(const Value*)>;

struct LoweringInputs {
  FindStorage find_storage;
  const std::vector<Buffer>* buffers = nullptr;
  // Further places that the kernel which computes a value stores it in.
  const std::multimap<const Value*, Storage>* also = nullptr;
  bool even_positions = false;  // see LowerOptions
};

// What lowering a kernel ends with that would become too large, in its text or in its operands: `value`, which it would
// compute, has to be in memory first. Then it is lowered again.
struct StoreFirst {
  const Value* value = nullptr;
};

// Throws StoreFirst.
Kernel lower_group(const Group& group, const LoweringInputs& inputs);
// A pointwise kernel that computes `value` and stores it to `target`.
Kernel lower_copy(const Value* value, const Storage& target, const LoweringInputs& inputs);

// What a kernel computes values of this type in: 16-bit floats in single precision. Loads convert, stores round.
DType computed_as(DType dtype);

// Incremental construction of a Kernel; used by the anchors' files. Its nodes have the types that are computed in.
class KernelBuilder {
 public:
  explicit KernelBuilder(const LoweringInputs& inputs) : inputs_(inputs) {}

  Kernel kernel;
  bool even_positions() const { return inputs_.even_positions; }

  // Elements of the anchor's result that one point of the iteration space computes, if it is more than one: the group's
  // epilogue is applied to each, and stored where `guard` holds.
  struct Part {
    std::vector<Expr> coords;
    NodeId node = -1;
    std::vector<Expr> guard;
  };
  std::vector<Part> parts;
  // Coordinates of the element of a reduction's operand at a point of the iteration space: the group may compute with those.
  std::vector<Expr> row_coords;

  // Axes of a name that there is already are the same: for the anchors of one group after the first.
  bool shares_axes = false;
  Expr add_axis(std::string name, const Expr& extent);       // returns its index expression
  Expr add_reduction(std::string name, const Expr& extent);  // the same for a reduction axis
  std::vector<Expr> axes_for(const Shape& shape, std::string_view prefix = "i");

  // The node computing element `coords` of `value`; may assume `guard` holds. Values computed inside the kernel are bound
  // first.
  NodeId element(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard = {});
  // The same for a result of the kernel, which has storage already: it is computed, not looked up.
  NodeId root(const Value* value, const std::vector<Expr>& coords);
  void bind(const Value* value, std::vector<Expr> coords, NodeId node);
  const std::vector<Expr>* bound_coords(const Value* value) const;

  NodeId add(ScalarNode node);
  NodeId number(DType dtype, double value);
  NodeId index(const Expr& e, DType dtype);
  NodeId apply(std::string_view op, std::vector<NodeId> args);
  NodeId apply(const OpDef& op, std::vector<NodeId> args);
  NodeId cast(NodeId x, DType dtype);
  // The operator cast: a 16-bit float is rounded here, wherever it is used.
  NodeId convert(NodeId x, DType dtype);
  NodeId bits(NodeId x, DType from, DType to);
  // The result of an elementwise operator without a scalar form, a cast or a bitcast, of x.
  NodeId converted(const Node& node, NodeId x);
  NodeId reduced(int stage, DType dtype);
  // `x` where `guard` holds, else `fill`; folds into the load if `x` is one.
  NodeId guarded(NodeId x, const std::vector<Expr>& outer, const std::vector<Expr>& guard, double fill);

  void store(const Value* value, const std::vector<Expr>& coords, NodeId node, std::vector<int> row_axes = {},
             std::vector<Expr> guard = {});
  void store_to(const Storage& target, DType dtype, const std::vector<Expr>& coords, NodeId node, const std::string& name,
                const std::vector<int>& row_axes = {});
  // Of a user's body, which reads or writes `value` by a pointer. CompileError if it does not lie in memory as it is.
  void point_to(const Value* value, bool written, Code::Access& access);
  void note(const Node& node);  // adds its source name and flops

  const ScalarNode& at(NodeId id) const { return kernel.nodes[static_cast<std::size_t>(id)]; }

 private:
  Expr axis_of(std::vector<Axis>& axes, std::string name, const Expr& extent) const;
  NodeId compute(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard);
  NodeId expression_of(const Node& node, DType dtype, const std::vector<Expr>& coords);
  NodeId mapped(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard);
  NodeId load(const Value* value, const Storage& storage, const std::vector<Expr>& coords, const std::vector<Expr>& guard);
  Expr integer_at(const Value* value, const std::vector<Expr>& coords, const std::vector<Expr>& guard, const Expr& bound);
  static bool concerns(const Expr& condition, const std::vector<std::string>& used, const std::set<std::string>& axes);
  int operand(int buffer, DType dtype, bool written, const std::string& name);
  void count_read(const ScalarNode& load, const Expr& elements, const Expr& held);
  Expr elements_read(const Expr& elements, const Expr& index) const;
  bool can_be_stored(const Value* value) const;
  void store_if_large(const Value* value, std::size_t nodes, std::size_t operands, std::size_t bound) const;

  LoweringInputs inputs_;
  const Value* root_ = nullptr;
  struct Bound {
    std::vector<Expr> coords;
    NodeId node;
  };
  std::unordered_map<const Value*, Bound> bound_;
  std::size_t bound_uses_ = 0;
  int depth_ = 0;                                   // of values that are being computed for each other
  std::unordered_map<const Value*, int> computed_;  // at how many places
  // What a node is of: a number, an index, an element or a load, by what tells it from others of its kind.
  struct MemoKey {
    char kind = 0;
    DType dtype = DType::f32;
    int operand = -1;
    const void* value = nullptr;
    std::uint64_t bits = 0;
    std::vector<Expr> position{}, guard{};
    bool operator==(const MemoKey&) const = default;
  };
  struct MemoHash {
    std::size_t operator()(const MemoKey& key) const;
  };
  std::unordered_map<MemoKey, NodeId, MemoHash> memo_;
  struct Reads {
    std::set<Expr> positions;
    Expr elements = 0;
  };
  std::map<int, Reads> reads_;  // by operand
};

// "z", "y", "x": names of `rank` spatial axes.
std::string spatial_name(std::size_t i, std::size_t rank);
// Position that the window tap `k` reads at output `o` along spatial dimension i, guarded by the input's extent.
Expr window_position(const Node& node, std::size_t i, const Expr& o, const Expr& k, const Expr& extent,
                     std::vector<Expr>& guard);
// A stage over all reduction axes that there are so far; its number.
int add_stage(KernelBuilder& b, Stage::Combine combine, NodeId body, DType accumulator);

// The anchors: each sets the axes and binds the anchor's result at the coordinates it returns in the builder.
void lower_matmul(KernelBuilder& b, const Node& node);
void lower_conv(KernelBuilder& b, const Node& node);
void lower_conv_direct(KernelBuilder& b, const Node& node);
void lower_pool(KernelBuilder& b, const Node& node);
void lower_reduction(KernelBuilder& b, const Node& node);
void lower_row(KernelBuilder& b, const Node& node);
void lower_cumsum(KernelBuilder& b, const Node& node);
void lower_code(KernelBuilder& b, const Node& node);
void lower_winograd_input(KernelBuilder& b, const Node& node);
void lower_winograd_output(KernelBuilder& b, const Node& node);
void lower_winograd_gradient(KernelBuilder& b, const Node& node);
void lower_winograd_filter_gradient(KernelBuilder& b, const Node& node);

}  // namespace oclc
