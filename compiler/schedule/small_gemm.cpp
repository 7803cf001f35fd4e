#include "compiler/schedule/small_gemm.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "compiler/contraction/gpu/small_gemm.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Loads and flops that an element of the left operand is computed of, as a batch norm's before the product: each tile of
// columns repeats them.
constexpr int kMostLoads = 4;

// A load along the terms, or a few numbers computed of such loads and of others that are the same for all terms.
bool is_simple(const Kernel& kernel, NodeId root, const std::string& inner) {
  const Kernel part = part_for(kernel, root);
  int loads = 0;
  double flops = 0;
  bool is_along = false;
  for (const ScalarNode& n : part.nodes) {
    if (n.kind == ScalarNode::Kind::load && n.dtype == DType::f32) {
      ++loads;
      const auto stride = n.index.coefficient(inner);
      if (!stride || !(*stride == Expr(0) || *stride == Expr(1))) return false;
      is_along = is_along || *stride == Expr(1);
    } else if (n.kind == ScalarNode::Kind::apply) {
      flops += n.op->flops;
    } else if (n.kind != ScalarNode::Kind::constant) {
      return false;
    }
  }
  return is_along && loads <= kMostLoads && flops <= cost::kMostGatheredFlops;
}

std::optional<SmallGemm> product_of(const Kernel& kernel, const SmallGemmRegime& regime) {
  if (!kernel.contraction || kernel.stages.size() != 1 || kernel.stages[0].accumulator != DType::f32 ||
      kernel.stages[0].combine != Stage::Combine::sum || kernel.contraction->n.size() != 1 || kernel.contraction->k.empty())
    return std::nullopt;
  const Contraction& c = *kernel.contraction;
  SmallGemm e;
  const auto multiply = [](std::int64_t& into, const std::vector<int>& numbers, const std::vector<Axis>& axes) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int i) {
      const auto extent = axes[static_cast<std::size_t>(i)].extent.constant();
      into *= extent.value_or(0);
      return into > 0;
    });
  };
  if (!multiply(e.groups, c.batch, kernel.axes) || !multiply(e.rows, c.m, kernel.axes) ||
      !multiply(e.columns, c.n, kernel.axes))
    return std::nullopt;
  const Axis& inner = kernel.reduction[static_cast<std::size_t>(c.k.back())];
  const ScalarNode& b = kernel.nodes[static_cast<std::size_t>(c.b)];
  if (!multiply(e.depth, c.k, kernel.reduction) || inner.extent.value() % 4 != 0 || e.rows == 1 ||
      b.kind != ScalarNode::Kind::load || !b.guard.empty() || !(regime.halves || b.index.coefficient(inner.name) == Expr(1)) ||
      !is_simple(kernel, c.a, inner.name))
    return std::nullopt;
  return e;
}

std::optional<ShortTiles> tiles_of(const Kernel& kernel, const Target& target, const SmallGemmRegime& regime, bool is_part,
                                   bool is_asked) {
  const auto product = has_small_gemm(target) ? product_of(kernel, regime) : std::nullopt;
  return product ? choose_small_gemm(*product, regime, target, is_part, is_asked) : std::nullopt;
}

// Weights [result][term][tap] of a window's product, which the kernel alone reads, as [result][tap][term]: the kernel reads
// them that way, and the constant is to be laid out so.
struct WindowWeights {
  int buffer = -1;
  std::int64_t results = 1, taps = 1, terms = 1;
};

std::optional<WindowWeights> lay_terms_together(Kernel& kernel, const Schedule& schedule, const std::map<int, int>& uses) {
  if (!kernel.contraction || kernel.contraction->n.size() != 1 || kernel.contraction->k.size() < 2) return std::nullopt;
  const Contraction& c = *kernel.contraction;
  ScalarNode& b = kernel.nodes[static_cast<std::size_t>(c.b)];
  const Axis& result = kernel.axes[static_cast<std::size_t>(c.n[0])];
  if (b.kind != ScalarNode::Kind::load || !b.guard.empty() || !result.extent.is_constant()) return std::nullopt;
  WindowWeights w;
  w.buffer = kernel.operands[static_cast<std::size_t>(b.operand)].buffer;
  w.results = result.extent.value();
  Expr tap = 0;
  for (const int i : c.k) {
    const Axis& axis = kernel.reduction[static_cast<std::size_t>(i)];
    if (!axis.extent.is_constant()) return std::nullopt;
    const bool inner = i == c.k.back();
    (inner ? w.terms : w.taps) *= axis.extent.value();
    if (!inner) tap = tap * axis.extent + axis.var;
  }
  const Axis& term = kernel.reduction[static_cast<std::size_t>(c.k.back())];
  const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(w.buffer)];
  const Expr of_result = result.var * Expr(w.taps * w.terms);
  if (w.taps == 1 || buffer.kind != BufferKind::constant || buffer.dtype != DType::f32 || uses.at(w.buffer) != 1 ||
      buffer.constant.elements() != w.results * w.taps * w.terms || !(b.index == of_result + term.var * Expr(w.taps) + tap))
    return std::nullopt;
  b.index = of_result + tap * Expr(w.terms) + term.var;
  return w;
}

void lay_terms_together(HostTensor& weights, const WindowWeights& w) {
  HostTensor out(DType::f32, weights.shape());
  const auto* from = reinterpret_cast<const float*>(weights.data());
  auto* to = reinterpret_cast<float*>(out.mutable_data());
  for (std::int64_t result = 0; result < w.results; ++result) {
    for (std::int64_t tap = 0; tap < w.taps; ++tap) {
      for (std::int64_t term = 0; term < w.terms; ++term) *to++ = from[(result * w.terms + term) * w.taps + tap];
    }
  }
  weights = std::move(out);
}

// A right operand of constant numbers, whose steps along the terms and the results are known.
bool is_packable(const Kernel& kernel, const Schedule& schedule) {
  if (!kernel.contraction || kernel.contraction->k.empty() || kernel.contraction->n.size() != 1) return false;
  const Contraction& c = *kernel.contraction;
  const ScalarNode& b = kernel.nodes[static_cast<std::size_t>(c.b)];
  if (b.kind != ScalarNode::Kind::load || !b.guard.empty() || b.dtype != DType::f32) return false;
  const auto is_known = [&](const std::string& name) {
    const auto stride = b.index.coefficient(name);
    return stride && stride->is_constant();
  };
  const Buffer& buffer =
      schedule.buffers[static_cast<std::size_t>(kernel.operands[static_cast<std::size_t>(b.operand)].buffer)];
  return buffer.kind == BufferKind::constant && buffer.dtype == DType::f32 &&
         is_known(kernel.axes[static_cast<std::size_t>(c.n[0])].name) &&
         std::all_of(c.k.begin(), c.k.end(),
                     [&](int i) { return is_known(kernel.reduction[static_cast<std::size_t>(i)].name); }) &&
         std::all_of(c.batch.begin(), c.batch.end(),
                     [&](int i) { return is_known(kernel.axes[static_cast<std::size_t>(i)].name); });
}

}  // namespace

void small_gemm(Schedule& schedule, const ScheduleContext& context) {
  const Target& target = context.target;
  const std::map<int, int> uses = schedule.uses();
  for (const EntrySchedule& entry : schedule.entries) {
    double of_host = 0, of_device = 0;
    for (const Step& step : entry.steps) {
      if (!step.is_kernel()) continue;
      const Kernel& kernel = schedule.kernel(step);
      of_host += target.launch_seconds;
      of_device +=
          typical(kernel.flops) / (target.flops * cost::kSmallKernelShare) + typical(kernel.bytes) / target.bytes_per_second;
    }
    std::map<int, StrategyId> before;  // of products marked although the device has more to do than the host
    for (const Step& step : entry.steps) {
      if (!step.is_kernel()) continue;
      Kernel& kernel = schedule.kernel(step);
      const SmallGemmRegime& regime =
          *small_gemm_regime(target.precision.rounds_operands() && is_packable(kernel, schedule) ? StrategyId::small_gemm_f16
                                                                                                 : StrategyId::small_gemm);
      if (of_device >= regime.device_per_host * of_host) continue;
      Kernel laid_out = kernel;
      const auto weights = regime.halves ? std::nullopt : lay_terms_together(laid_out, schedule, uses);
      if (!tiles_of(laid_out, target, regime, false, false)) continue;
      if (of_device >= of_host) before.emplace(step.kernel(), kernel.contraction->asked);
      kernel = std::move(laid_out);
      kernel.contraction->asked = regime.strategy;
      if (weights) lay_terms_together(schedule.buffers[static_cast<std::size_t>(weights->buffer)].constant, *weights);
    }
    // Those are faster as parts of a launch alone.
    const std::span<const Step> steps(entry.steps);
    for (std::size_t i = 0, n = 1; i < steps.size(); i += n) {
      n = std::max<std::size_t>(1, stretch_length(schedule, steps.subspan(i), target));
      const auto found = n == 1 && steps[i].is_kernel() ? before.find(steps[i].kernel()) : before.end();
      if (found != before.end()) schedule.kernels[static_cast<std::size_t>(found->first)].contraction->asked = found->second;
    }
  }
}

std::optional<SmallGemm> small_gemm_of(const Kernel& kernel) {
  const SmallGemmRegime* regime = kernel.contraction ? small_gemm_regime(kernel.contraction->asked) : nullptr;
  return regime ? product_of(kernel, *regime) : std::nullopt;
}

std::optional<ShortTiles> small_gemm_tiles(const Kernel& kernel, const Target& target, bool is_part) {
  const SmallGemmRegime* regime = kernel.contraction ? small_gemm_regime(kernel.contraction->asked) : nullptr;
  return regime ? tiles_of(kernel, target, *regime, is_part, true) : std::nullopt;
}

}  // namespace oclc
