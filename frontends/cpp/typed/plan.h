// A module compiled in this process for a context's device.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "frontends/cpp/typed/device_target.h"
#include "oclc/oclc.hpp"
#include "runtime/package/writer.h"

namespace oclc {

// The plan of `module`, which is rewritten, by these options but for the target, which is that of the context's device. The
// package is written to `file` too if it is not empty; `sources` receives the generated kernels if it is not null. Throws
// CompileError, rt::Error.
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
