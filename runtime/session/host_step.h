// Steps of a plan that the host computes.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/session/loaded_plan.h"
#include "runtime/session/strings.h"

namespace oclc::runtime {

// Reads the operands when everything enqueued so far is done, computes, and returns when the results are in their buffers,
// which lie at `places`.
void run_host(const oclc::plan::Host& host, const LoadedPlan& loaded, std::span<const Place> places,
              std::span<const std::int64_t> symbols, cl_command_queue queue, StringTable& strings);

}  // namespace oclc::runtime
