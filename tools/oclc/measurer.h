// Jobs of the tuner and of calibration on a device, with the host reference's results beside the device's.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/tuning/search.h"
#include "oclc/oclc.hpp"
#include "tools/oclc/options.h"

namespace oclc::tool {

// Options and target of the context's device.
CompileOptions options_for(const rt::Context& context, BuildOptions build);

// What results are compared with: the host reference's, which takes seconds for large operators, or those of the choice that is
// measured first, which then is not checked itself.
enum class ComparedWith { host, first };

class Measurer {
 public:
  Measurer(const rt::Context& context, CompileOptions options, ComparedWith compared = ComparedWith::host)
      : context_(context), options_(std::move(options)), compared_(compared) {}

  Measurement operator()(const TuningJob& job, const Tuning& choices, double give_up_seconds);
  // Plans that were timed are timed again.
  void forget() { timed_.clear(); }

 private:
  double tolerance() const;
  void begin(const TuningJob& job);

  const rt::Context& context_;
  CompileOptions options_;
  ComparedWith compared_;
  std::shared_ptr<const Graph> graph_;
  std::vector<HostTensor> inputs_, wanted_;
  std::map<std::string, double> timed_;  // by the plan's bytes: choices may come to the same
};

}  // namespace oclc::tool
