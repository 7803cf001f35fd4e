#include "tools/oclc/add_binaries.h"

#include <algorithm>

#include "oclc/oclc.hpp"
#include "tools/oclc/commands/bench_run.h"
#include "tools/oclc/plan_view.h"

namespace oclc::tool {

void add_binaries(const std::string& path, const std::string& device, const std::map<std::string, std::int64_t>& sizes) {
  const rt::Plan plan = rt::Plan::load(path);
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.device = device.c_str();
  options.for_binaries = 1;
  const rt::Context context(options);
  const rt::Session kept(plan, context);  // its programs are those of the runs below
  SymbolValues dims;
  for (const oclc_symbol_info& symbol : plan.symbols()) {
    if (symbol.loop_counter) continue;
    const auto given = sizes.find(symbol.name);
    dims[symbol.name] = given != sizes.end() ? given->second : std::max<std::int64_t>(symbol.lo, 1);
  }
  for (std::uint32_t i = 0; i < plan.info().entry_count; ++i) BenchRun(plan, context, dims, plan.entry_info(i).name).run_ms();
  context.write_binaries(plan, path);
}

}  // namespace oclc::tool
