// A device's rates beside those of its target's row.
#include "tools/oclc/commands/calibrate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/tuning/calibration.h"
#include "tools/oclc/console.h"
#include "tools/oclc/interrupt.h"
#include "tools/oclc/measurer.h"
#include "tools/oclc/timed_plan.h"
#include "tools/oclc/tuned.h"

namespace oclc::tool {

using nlohmann::json;

int calibrate_command(const BuildOptions& build, const OutputOptions& shown, TuningDatabase& database) {
  const rt::Context context = profiling_context(build.device);
  const CompileOptions options = options_for(context, build);
  const TunedDevice device = tuned_device(context.device(), options.target);
  Measurer measurer(context, options);
  const std::vector<CalibratedRow> rows = calibrate(options.target, std::ref(measurer), [&](const Trial& trial) {
    const FilesBeingWritten guard;
    database.add(device, trial);
  });
  json list = json::array();
  if (!shown.json)
    print_result(fmt::format("device: {} ({})\n{:20} {:>12} {:>12} {:>7}  unit\n", device.name, device.family, "fact or cost",
                             "measured", "table", "ratio"));
  bool complete = true;
  for (const CalibratedRow& row : rows) {
    complete = complete && row.note.empty();
    if (shown.json)
      list.push_back(
          {{"name", row.name}, {"unit", row.unit}, {"measured", row.measured}, {"table", row.table}, {"note", row.note}});
    else if (row.note.empty())
      print_result(fmt::format("{:20} {:>12.4g} {:>12.4g} {:>7.2f}  {}\n", row.name, row.measured, row.table,
                               row.measured / row.table, row.unit));
    else
      print_result(fmt::format("{:20} {:>12} {:>12.4g} {:>7}  {}; {}\n", row.name, "-", row.table, "-", row.unit, row.note));
  }
  if (shown.json)
    print_result(json{{"schema", 1},
                      {"kind", "calibration"},
                      {"version", oclc_version()},
                      {"device", device.name},
                      {"family", device.family},
                      {"rows", list}}
                     .dump(2, ' ', false, json::error_handler_t::replace) +
                 "\n");
  return complete ? 0 : 1;
}

}  // namespace oclc::tool
