// A plan on a device for the tuner: what launches of one node take, and whether the results are right.
#pragma once
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/plan/build_plan.h"
#include "oclc/oclc.hpp"

namespace oclc::tool {

rt::Context profiling_context(const std::string& device);

std::vector<HostTensor> random_inputs(const Graph& graph);
std::vector<HostTensor> reference_of(const Graph& graph, const std::vector<HostTensor>& inputs);

class TimedPlan {
 public:
  // `inputs` live longer. Throws rt::Error.
  TimedPlan(const BuiltPlan& built, const rt::Context& context, const std::vector<HostTensor>& inputs);

  // Seconds of the launches with that node, the fastest of several runs; of one run if the first is slower than `give_up`.
  double seconds_of(std::string_view node, double give_up);
  // Of the runs so far, the shortest from its first launch's start to its last one's end.
  double span_seconds() const { return span_; }
  const std::vector<HostTensor>& outputs() const { return outputs_; }  // of the last run
  // What is wrong with the last run's results; empty if they are within `tolerance` of the largest number of each.
  std::string difference(const std::vector<HostTensor>& wanted, double tolerance) const;

 private:
  double run(std::string_view node);
  rt::Session session_;
  std::vector<HostTensor> outputs_;
  double span_ = std::numeric_limits<double>::infinity();
};

}  // namespace oclc::tool
