// The buffers of a step, whatever its form.
#pragma once
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Those that the step reads or writes, and the steps in it do; a buffer may be there more than once.
inline std::vector<int> buffers_in(const Schedule& schedule, const Step& step) {
  std::vector<int> all;
  if (step.is_kernel()) {
    for (const Operand& o : schedule.kernel(step).operands) all.push_back(o.buffer);
  } else if (const auto* product = step.as<GemmStep>()) {
    const Gemm& g = schedule.gemms[static_cast<std::size_t>(product->gemm)];
    all = {g.a, g.b, g.c};
  } else if (const auto* sizes = step.as<ReadingStep>()) {
    all.push_back(schedule.readings[static_cast<std::size_t>(sizes->reading)].buffer);
  } else if (const auto* host = step.as<HostStep>()) {
    const HostCall& call = schedule.hosts[static_cast<std::size_t>(host->host)];
    for (const auto* list : {&call.inputs, &call.outputs}) {
      for (const HostOperand& o : *list) all.push_back(o.buffer);
    }
  }
  for (const Step& inner : step.body()) {
    const std::vector<int> more = buffers_in(schedule, inner);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace oclc
