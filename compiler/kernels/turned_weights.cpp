#include "compiler/kernels/turned_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "compiler/kernels/kernel_part.h"

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

class Turner {
 public:
  explicit Turner(Schedule& schedule) : schedule_(schedule), uses_(schedule.uses()) {}

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
        buffer.constant.elements() != rows * columns || !load.guard.empty() ||
        !(load.index == term.var * Expr(columns) + result.var))
      return;
    buffer.constant = turned(buffer.constant, rows, columns);
    load.index = result.var * Expr(rows) + term.var;
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

  static std::ptrdiff_t loads_of(const Kernel& kernel, int buffer) {
    return std::count_if(kernel.nodes.begin(), kernel.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && kernel.operands[static_cast<std::size_t>(n.operand)].buffer == buffer;
    });
  }

  Schedule& schedule_;
  const std::map<int, int> uses_;
};

}  // namespace

void turn_weights(Schedule& schedule, const Target& target) {
  if (target.device_class != DeviceClass::gpu || target.loop_iterations != Target::kNoLimit) return;
  Turner turner(schedule);
  for (const EntrySchedule& entry : schedule.entries) {
    for (const Step& step : entry.steps) {
      if (step.kernel >= 0) turner.kernel(schedule.kernels[static_cast<std::size_t>(step.kernel)]);
    }
  }
}

}  // namespace oclc
