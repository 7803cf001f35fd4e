// A module compiled in this process for a context's device.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "oclc/oclc.hpp"
#include "runtime/package/writer.h"

namespace oclc {

// Target row for a device of the runtime's list.
inline Target target_of(const oclc_device_info& device) {
  DeviceFacts facts;
  facts.is_cpu = device.device_class == OCLC_DEVICE_CPU;
  facts.vector_width = static_cast<int>(device.vector_width_float);
  facts.compute_units = static_cast<int>(device.compute_units);
  facts.local_bytes = static_cast<std::int64_t>(device.local_bytes);
  facts.cache_bytes = static_cast<std::int64_t>(device.cache_bytes);
  facts.max_work_group = static_cast<int>(device.max_work_group_size);
  facts.fp64 = device.fp64 != 0;
  return target_for(facts);
}

// The plan of `module`, which is rewritten, by these options but for the target, which is that of the context's device. The package is written to
// `file` too if it is not empty; `sources` receives the generated kernels if it is not null. Throws CompileError, rt::Error.
inline rt::Plan plan_for(const rt::Context& context, std::shared_ptr<Module> module, const CompileOptions& chosen,
                         std::vector<GeneratedFile>* sources = nullptr, const std::string& file = {}) {
  CompileOptions options = chosen;
  options.target = target_of(context.device());
  const Compiled compiled = compile(std::move(module), options);
  if (sources) *sources = compiled.plan.files;
  const auto metadata = std::as_bytes(std::span(compiled.plan.metadata));
  if (!file.empty()) package::write_package(file, metadata, compiled.plan.constants);
  const std::vector<std::byte> package = package::package_to_memory(metadata, compiled.plan.constants);
  return rt::Plan::load(package.data(), package.size());
}

}  // namespace oclc
