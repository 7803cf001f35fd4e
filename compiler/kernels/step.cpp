#include "compiler/kernels/step.h"

#include "compiler/support/error.h"

namespace oclc {
namespace {

template <class F>
constexpr bool kIsSingle = std::is_same_v<F, KernelStep> || std::is_same_v<F, GemmStep> || std::is_same_v<F, ReadingStep> ||
                           std::is_same_v<F, HostStep>;

}  // namespace

int Step::kernel() const {
  const auto* launched = as<KernelStep>();
  OCLC_CHECK(launched, "a step that is no kernel is taken for one");
  return launched->kernel;
}

bool Step::is_beside() const {
  const auto* launched = as<KernelStep>();
  return launched && launched->beside;
}

const std::string& Step::counter() const {
  static const std::string none;
  if (const auto* loop = as<LoopStep>()) return loop->counter;
  if (const auto* groups = as<WorkGroupStep>()) return groups->counter;
  return none;
}

Expr Step::trip() const {
  if (const auto* loop = as<LoopStep>()) return loop->trip;
  if (const auto* loops = as<ParallelLoopsStep>()) return loops->trip;
  const auto* groups = as<WorkGroupStep>();
  return groups ? groups->trip : Expr(0);
}

bool Step::is_single() const {
  return std::visit([](const auto& of) { return kIsSingle<std::decay_t<decltype(of)>>; }, form);
}

std::span<Step> Step::body() {
  return std::visit(
      [](auto& of) -> std::span<Step> {
        if constexpr (kIsSingle<std::decay_t<decltype(of)>>)
          return {};
        else
          return of.body;
      },
      form);
}

std::span<const Step> Step::body() const { return const_cast<Step*>(this)->body(); }

std::size_t steps_of_launch(std::span<const Step> steps) {
  std::size_t n = 1;
  while (n < steps.size() && steps[n].is_beside()) ++n;
  return n;
}

}  // namespace oclc
