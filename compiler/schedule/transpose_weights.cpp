#include "compiler/schedule/transpose_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "compiler/kernels/kernel_part.h"
#include "compiler/ops/op_list.h"
#include "compiler/schedule/row_product.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Rows and columns that are copied together: both sides stay in a cache.
constexpr std::int64_t kTurnedBlock = 64;

HostTensor turned(const HostTensor& matrix, std::int64_t rows, std::int64_t columns) {
  HostTensor out(DType::f32, {columns, rows});
  const std::byte* from = matrix.data();
  std::byte* to = out.mutable_data();
  for (std::int64_t row = 0; row < rows; row += kTurnedBlock) {
    for (std::int64_t column = 0; column < columns; column += kTurnedBlock) {
      for (std::int64_t c = column; c < std::min(columns, column + kTurnedBlock); ++c) {
        for (std::int64_t r = row; r < std::min(rows, row + kTurnedBlock); ++r)
          std::memcpy(to + (c * rows + r) * 4, from + (r * columns + c) * 4, 4);
      }
    }
  }
  return out;
}

constexpr int kLargestShort = 32767;

struct QuantizedWeights {
  HostTensor numbers, scales;  // i16[results, terms], f32[results]
};

// Numbers of 16 bits and what those of a result are multiplied by; nothing where those of one are too far apart.
std::optional<QuantizedWeights> shortened(const HostTensor& weights, std::int64_t results, std::int64_t terms) {
  QuantizedWeights s{HostTensor(DType::i16, {results, terms}), HostTensor(DType::f32, {results})};
  for (std::int64_t r = 0; r < results; ++r) {
    double largest = 0, all = 0, errors = 0;
    for (std::int64_t i = r * terms; i < (r + 1) * terms; ++i) largest = std::max(largest, std::abs(weights.at(i)));
    s.scales.set(r, largest / kLargestShort);
    const double scale = s.scales.at(r);
    for (std::int64_t i = r * terms; i < (r + 1) * terms; ++i) {
      const double x = weights.at(i), number = scale > 0 ? std::nearbyint(x / scale) : 0;
      if (!std::isfinite(number)) return std::nullopt;
      s.numbers.set_int(i, static_cast<std::int64_t>(std::clamp<double>(number, -kLargestShort, kLargestShort)));
      const double error = number * scale - x;
      all += x * x;
      errors += error * error;
    }
    if (errors > cost::kRoundingOfShorts * cost::kRoundingOfShorts * all) return std::nullopt;
  }
  return s;
}

bool refers_to_nodes(const Kernel& kernel) {
  const std::vector<Expr> indices = indices_of(kernel);
  return std::any_of(indices.begin(), indices.end(), reads_values);
}

// A sum of products with one node that stands for it.
bool has_one_sum(const Kernel& kernel) {
  const Stage& stage = kernel.stages[0];
  return stage.combine == Stage::Combine::sum && stage.arg_index < 0 &&
         kernel.nodes[static_cast<std::size_t>(stage.body)].op_name == "mul" &&
         std::count_if(kernel.nodes.begin(), kernel.nodes.end(),
                       [](const ScalarNode& n) { return n.kind == ScalarNode::Kind::reduced; }) == 1;
}

// Puts nodes behind node `at` that stand for it wherever it was used.
void replace_behind(Kernel& kernel, NodeId at, std::vector<ScalarNode> nodes) {
  const auto count = static_cast<NodeId>(nodes.size());
  const auto moved = [&](NodeId id) { return id < at ? id : id + count; };
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    for (NodeId& a : kernel.nodes[i].args) a = moved(a);
  }
  for (Stage& s : kernel.stages) s.body = moved(s.body);
  for (Store& s : kernel.stores) s.value = moved(s.value);
  kernel.nodes.insert(kernel.nodes.begin() + at + 1, std::make_move_iterator(nodes.begin()),
                      std::make_move_iterator(nodes.end()));
}

class Turner {
 public:
  Turner(Schedule& schedule, const Target& target) : schedule_(schedule), uses_(schedule.uses()), target_(target) {}

  void kernel(Kernel& kernel) {
    if (kernel.contraction || kernel.anchor != Anchor::reduce || kernel.stages.size() != 1 || kernel.reduction.size() != 1 ||
        kernel.axes.empty())
      return;
    const Axis &term = kernel.reduction[0], &result = kernel.axes.back();
    if (!term.extent.is_constant() || !result.extent.is_constant() || term.extent == Expr(1) || result.extent == Expr(1))
      return;
    const auto weights = only_load_along(kernel, result);
    if (!weights) return;
    ScalarNode& load = kernel.nodes[static_cast<std::size_t>(*weights)];
    const int id = kernel.operands[static_cast<std::size_t>(load.operand)].buffer;
    Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(id)];
    const std::int64_t rows = term.extent.value(), columns = result.extent.value();
    if (buffer.kind != BufferKind::constant || buffer.dtype != DType::f32 || uses_.at(id) != 1 || loads_of(kernel, id) != 1 ||
        buffer.constant.elements() != rows * columns || !load.guard.empty())
      return;
    const Expr by_results = result.var * Expr(rows) + term.var;
    if (load.index == term.var * Expr(columns) + result.var) {
      buffer.constant = turned(buffer.constant, rows, columns);
      load.index = by_results;
    } else if (!(load.index == by_results)) {
      return;
    }
    if (const auto product = row_product(kernel, schedule_.buffers, target_);
        product && in_twelve_bits(buffer.constant, *product)) {
      // Code generation packs them.
      kernel.bytes = kernel.bytes - Expr(product->results * (product->terms - words_of_row(product->terms)) * 4);
    } else if (target_.precision.rounds_operands() && has_one_sum(kernel) && !refers_to_nodes(kernel)) {
      shorten(kernel, *weights);
    }
  }

 private:
  // The only load of what is summed up that varies along the results.
  static std::optional<NodeId> only_load_along(const Kernel& kernel, const Axis& axis) {
    const Kernel part = part_for(kernel, kernel.stages[0].body);
    std::optional<NodeId> found;
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      const ScalarNode& n = part.nodes[i];
      if (!n.index.uses(axis.name)) continue;
      if (n.kind != ScalarNode::Kind::load || found) return std::nullopt;
      found = static_cast<NodeId>(i);
    }
    return found;
  }

  // Weights, stored by results, become numbers of 16 bits, which the kernel multiplies by the scale of their result.
  void shorten(Kernel& kernel, NodeId id) {
    const Axis &term = kernel.reduction[0], &result = kernel.axes.back();
    const int operand = kernel.nodes[static_cast<std::size_t>(id)].operand;
    Operand& numbers = kernel.operands[static_cast<std::size_t>(operand)];
    auto shorts = shortened(schedule_.buffers[static_cast<std::size_t>(numbers.buffer)].constant, result.extent.value(),
                            term.extent.value());
    if (!shorts) return;
    Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(numbers.buffer)];
    Buffer scales;
    scales.kind = BufferKind::constant;
    scales.name = buffer.name + ".scales";
    scales.elements = result.extent;
    scales.constant = std::move(shorts->scales);
    buffer.constant = std::move(shorts->numbers);
    buffer.dtype = numbers.dtype = DType::i16;
    Operand scale;
    scale.buffer = static_cast<int>(schedule_.buffers.size());
    scale.name = fmt::format("x{}", kernel.operands.size());
    scale.value = scales.name;
    schedule_.buffers.push_back(std::move(scales));
    kernel.operands.push_back(std::move(scale));
    kernel.nodes[static_cast<std::size_t>(id)].dtype = DType::i16;
    ScalarNode number, factor, product;
    number.kind = ScalarNode::Kind::cast;
    number.args = {id};
    replace_behind(kernel, id, {number});
    const auto is_sum = [](const ScalarNode& n) { return n.kind == ScalarNode::Kind::reduced; };
    const auto sum = static_cast<NodeId>(std::find_if(kernel.nodes.begin(), kernel.nodes.end(), is_sum) - kernel.nodes.begin());
    factor.kind = ScalarNode::Kind::load;
    factor.operand = static_cast<int>(kernel.operands.size()) - 1;
    factor.index = result.var;
    const OpDef& mul = op("mul");
    product.kind = ScalarNode::Kind::apply;
    product.op = mul.scalar;
    product.op_name = mul.name;
    product.args = {sum, sum + 1};
    replace_behind(kernel, sum, {factor, product});
    kernel.bytes = kernel.bytes - result.extent * term.extent * Expr(2);
  }

  static std::ptrdiff_t loads_of(const Kernel& kernel, int buffer) {
    return std::count_if(kernel.nodes.begin(), kernel.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && kernel.operands[static_cast<std::size_t>(n.operand)].buffer == buffer;
    });
  }

  Schedule& schedule_;
  const std::map<int, int> uses_;
  const Target& target_;
};

}  // namespace

void transpose_weights(Schedule& schedule, const ScheduleContext& context) {
  Turner turner(schedule, context.target);
  for (const EntrySchedule& entry : schedule.entries) {
    for (const Step& step : entry.steps) {
      if (step.is_kernel()) turner.kernel(schedule.kernel(step));
    }
  }
}

}  // namespace oclc
