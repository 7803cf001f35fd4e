// The kernel representation: an iteration space, index maps, a scalar expression DAG and an anchor that fixes loop structure
// and template. It prints as text, evaluates on the host (the oracle of code generation), and lowers to the holes of a
// template.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/contraction/strategy.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"
#include "compiler/kernels/step.h"
#include "compiler/ops/user_op.h"
#include "runtime/package/quantized_constants.h"

namespace oclc {

enum class Anchor { pointwise, reduce, row, contraction, scan, winograd_input, winograd_output, code };

std::string_view name_of(Anchor anchor);

// One dimension of the iteration space. `var` is the index expression: Expr::axis(name, extent), or 0 if the extent is 1.
struct Axis {
  std::string name;
  Expr extent;
  Expr var;
};

// A buffer of the schedule that the kernel reads or writes. Element addresses are relative to the buffer's start.
struct Operand {
  int buffer = -1;
  DType dtype = DType::f32;
  bool written = false;
  std::string name;       // in generated code
  std::string value;      // the model's name of what it holds, for comments
  bool replaced = false;  // by a packed copy: not an argument of the generated code
};

using NodeId = int;

// One scalar value of the DAG. All index expressions are over axes, model symbols and "%<id>": the integer value of node <id>.
struct ScalarNode {
  enum class Kind {
    constant,  // number, or Kernel::numbers[argument] if that is not negative
    index,     // the value of an integer expression
    load,      // operand[index] if guard else number
    apply,     // op(args)
    cast,      // args[0] converted to dtype
    bits,      // the bits of args[0], an element of type bits_from, read as one of type bits_to
    select,    // args[0] if guard else number: what lies outside a padded or concatenated piece
    choose,    // args[0] if guard else args[1]
    reduced,   // result of stage `stage`
    given      // what the kernel's code stores; `index` names the axes of the position
  };
  Kind kind = Kind::constant;
  DType dtype = DType::f32;
  double number = 0;
  Expr index;
  std::vector<Expr> guard;  // holds if every expression is >= 0
  int operand = -1;
  const ScalarOp* op = nullptr;
  std::string_view op_name;
  DType bits_from = DType::f32, bits_to = DType::f32;
  std::vector<NodeId> args;
  int stage = -1;
  int argument = -1;
};

// A reduction over some of the kernel's reduction axes: result = combine over them of body.
struct Stage {
  enum class Combine { sum, product, max, min, argmax_first, argmax_last, argmin_first, argmin_last };
  Combine combine = Combine::sum;
  std::vector<int> axes;  // indices into Kernel::reduction
  NodeId body = -1;
  NodeId arg_index = -1;  // arg*: the i64 position that belongs to body
  DType accumulator = DType::f32;
};

struct Store {
  int operand = -1;
  Expr index;
  NodeId value = -1;
  // Axes of Kernel::reduction that the store runs over as well (row kernels write the whole row).
  std::vector<int> row_axes;
  std::vector<Expr> guard;  // stores where every expression is >= 0
};

// Which axes play which part in sum over k of a[m, k] * b[k, n]. `a` and `b` are the factors of the only stage's body.
struct Contraction {
  NodeId a = -1, b = -1;
  std::vector<int> batch, m, n;  // indices into Kernel::axes
  std::vector<int> k;            // indices into Kernel::reduction, outermost first; the last is the channel or inner dimension
  // What a pass made of the product, or asks for; the strategy itself is chosen last, see contraction/strategy.h.
  StrategyId asked = StrategyId::gemm;
  std::optional<Choice> choice;
  // Both factors are integers of at most 256, which bfloat16 holds.
  bool integers = false;
  // So many work-groups share the terms of a tile, where code generation has a template for it; see split_k.h.
  std::int64_t shares = 1;
  // By axes of `m`, unless empty: lengths of windows that do not overlap. Of the results of each the largest is stored, at the
  // place that the stores have in common; see pool_products.h.
  std::vector<std::int64_t> windows = {};
  // Groups that share terms prefetch so many bytes of what a later launch reads while they wait for one another. Set by code
  // generation, see KernelStep::Prefetch.
  std::int64_t asked_bytes = 0;
};

// A user's body between loads and stores (Anchor::code): where it reads, the kernel computes a node at axes of
// Kernel::reduction that are the position; what it stores is a node of kind `given`, from which the stores over the same axes
// are computed.
struct Code {
  struct Access {
    const UserOperand* operand = nullptr;
    std::vector<int> axes;  // indices into Kernel::reduction
    NodeId node = -1;       // -1: an optional input that is not there
    int pointer = -1;       // the operand of the kernel that a pointer of the body points to
    Expr offset = 0;        // to its first element
  };
  const UserBody* body = nullptr;
  UserSpace space;
  std::vector<Access> loads, stores;  // by input and output of the node
};

struct Kernel {
  std::string name;  // from the source nodes
  Anchor anchor = Anchor::pointwise;
  std::vector<Axis> axes;  // parallel, in the order of the first store's addresses
  std::vector<Axis> reduction;
  std::vector<Operand> operands;
  std::vector<ScalarNode> nodes;  // every node stands after its arguments
  std::vector<Stage> stages;
  std::vector<Store> stores;
  std::optional<Contraction> contraction;
  std::optional<Code> code;
  std::vector<std::string> sources;  // names of the model's nodes
  std::string formula;               // e.g. "relu(conv(x, w) + y)"
  Expr flops = 0, bytes = 0;
  bool is_copy = false;  // only moves elements
  // Of the kernel of a family (ragged_family.h): floats that are arguments, and how many kernels it stands for.
  std::vector<std::string> numbers;
  std::int64_t members = 0;

  // Symbols of the model that the kernel needs as arguments, sorted.
  std::vector<std::string> model_symbols() const;
  std::string text() const;
};

// Node ids named "%<id>" inside an expression.
std::optional<NodeId> dynamic_index(std::string_view symbol);
std::string dynamic_symbol(NodeId id);

enum class BufferKind { arena, constant, input, output, state };

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::arena;
  DType dtype = DType::f32;
  Expr elements;
  HostTensor constant;  // kind constant: row-major data, already in its physical order
  int replaces = -1;    // while an entry is lowered: the state whose new value this is, in the same storage
  // Of a constant: the fewer bytes that a plan may hold instead; null: none are known.
  std::shared_ptr<const std::vector<package::QuantizedPart>> stored = {};
};

// Where a value lives: element (i0, i1, ...) at offset + i0*strides[0] + i1*strides[1] + ...
struct Storage {
  int buffer = -1;
  Expr offset = 0;
  std::vector<Expr> strides;
};

// A product of a library: C[g] = op(A[g]) * op(B[g]) for g < batch, row-major, single precision. Strides and offsets in
// elements.
struct Gemm {
  std::string name;
  int a = -1, b = -1, c = -1;  // buffers
  Expr offset_a = 0, offset_b = 0, offset_c = 0;
  Expr m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  Expr batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  bool trans_a = false, trans_b = false;
  std::vector<std::string> sources;  // names of the model's nodes
  Expr flops = 0, bytes = 0;
};

// Integers of a buffer, from element `offset` on, that the host reads as the values of `dims` for all that follows.
struct Reading {
  int buffer = -1;
  Expr offset = 0;
  std::vector<Expr> dims;   // symbols
  std::vector<Expr> upper;  // the largest value of each: what memory is laid out for, or kOpenDim
  std::vector<std::string> sources;
};

// A dense row-major tensor in a buffer, from element `offset` on.
struct HostOperand {
  int buffer = -1;
  Expr offset = 0;
  Shape shape;
};

// An operator that the host computes, as the runtime is told: see host_op.h.
struct HostCall {
  std::string op;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  std::vector<HostOperand> inputs, outputs;
  std::vector<std::string> sources;  // names of the model's nodes
};

// Every index and guard of the kernel's loads and stores, which `visit` may change, in one order.
template <class AnyKernel, class Visit>
void each_index(AnyKernel& kernel, Visit visit) {
  for (auto& node : kernel.nodes) {
    visit(node.index);
    for (auto& e : node.guard) visit(e);
  }
  for (auto& store : kernel.stores) {
    visit(store.index);
    for (auto& e : store.guard) visit(e);
  }
}

// What an index is at the first point of all the kernel's axes, summed ones too.
Expr at_first(const Kernel& kernel, const Expr& index);

// Adds names of the model's nodes that are not there yet.
void add_sources(std::vector<std::string>& sources, const std::vector<std::string>& more);

struct EntrySchedule {  // inputs and outputs are those that the caller binds: state is not among them
  std::string name;
  std::vector<std::pair<std::string, TensorType>> inputs, outputs;
  std::vector<int> input_buffers, output_buffers;
  std::vector<Step> steps;

  // The steps with those of megakernels in place of these.
  std::vector<Step> steps_apart() const;
};

// A state variable and the buffer, of kind state, that holds it for all entries.
struct ScheduledState {
  StateVariable variable;
  int buffer = -1;
};

struct Schedule {
  std::string model;
  std::vector<Expr> symbols;
  std::vector<ScheduledState> states;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Gemm> gemms;
  std::vector<Reading> readings;
  std::vector<HostCall> hosts;
  std::vector<EntrySchedule> entries;
  std::string text() const;
  // Of a step that is a kernel.
  const Kernel& kernel(const Step& step) const { return kernels.at(static_cast<std::size_t>(step.kernel())); }
  Kernel& kernel(const Step& step) { return kernels.at(static_cast<std::size_t>(step.kernel())); }
  // How many operands of all steps each buffer is.
  std::map<int, int> uses() const;
};

}  // namespace oclc
