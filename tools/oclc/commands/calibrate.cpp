// A device's rates beside those of its target's row.
#include "tools/oclc/commands/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/tuning/calibration.h"
#include "compiler/tuning/kernel_time.h"
#include "compiler/tuning/sweep.h"
#include "tools/oclc/console.h"
#include "tools/oclc/interrupt.h"
#include "tools/oclc/measurer.h"
#include "tools/oclc/timed_plan.h"
#include "tools/oclc/tuned.h"

namespace oclc::tool {

using nlohmann::json;

namespace {

// Kernel times of contractions under the cost models' choices.
KernelTimeModel fitted_kernel_times(const rt::Context& context, CompileOptions options, const CalibrationSweep& sweep,
                                    ProgressForm form) {
  Measurer measurer(context, options, ComparedWith::first);
  const std::vector<TuningJob> jobs = calibration_jobs(sweep.contractions, sweep.seed);
  const auto told = [&](std::size_t done, std::size_t count) {
    if (form != ProgressForm::none && done % 20 == 0) print_note(fmt::format("{} of {} timings of contractions", done, count));
  };
  std::vector<TimedContraction> timed;
  for (const Measurement& m : interleaved(jobs, std::ref(measurer), INFINITY, told))
    if (m.note.empty() && m.seconds > 0) timed.push_back({m.kernels, m.seconds});
  return KernelTimeModel::fit(timed, options.target);
}

void print_text(const TunedDevice& device, const std::vector<CalibratedRow>& rows, const KernelTimeModel& model) {
  print_result(fmt::format("device: {} ({})\n{:20} {:>12} {:>12} {:>7}  unit\n", device.name, device.family, "fact or cost",
                           "measured", "table", "ratio"));
  for (const CalibratedRow& row : rows) {
    if (row.note.empty())
      print_result(fmt::format("{:20} {:>12.4g} {:>12.4g} {:>7.2f}  {}\n", row.name, row.measured, row.table,
                               row.measured / row.table, row.unit));
    else
      print_result(fmt::format("{:20} {:>12} {:>12.4g} {:>7}  {}; {}\n", row.name, "-", row.table, "-", row.unit, row.note));
  }
  if (model.kinds.empty()) return;
  print_result(fmt::format("{:32} {:>8} {:>7} {:>9}\n", "kernel times", "of them", "error", "start us"));
  for (const auto& [kind, fitted] : model.kinds)
    print_result(fmt::format("{:32} {:>8} {:>5.0f} % {:>9.2f}\n", kind, fitted.kernels, fitted.error * 100,
                             fitted.coefficients[0] * 1e6));
}

json as_json(const TunedDevice& device, const std::vector<CalibratedRow>& rows, const KernelTimeModel& model) {
  json list = json::array(), kinds = json::array();
  for (const CalibratedRow& row : rows)
    list.push_back(
        {{"name", row.name}, {"unit", row.unit}, {"measured", row.measured}, {"table", row.table}, {"note", row.note}});
  for (const auto& [kind, fitted] : model.kinds)
    kinds.push_back(
        {{"kind", kind}, {"kernels", fitted.kernels}, {"median_error", fitted.error}, {"coefficients", fitted.coefficients}});
  return {{"schema", 1},           {"kind", "calibration"},   {"version", oclc_version()},
          {"device", device.name}, {"family", device.family}, {"rows", list},
          {"kernel_times", kinds}};
}

}  // namespace

int calibrate_command(const BuildOptions& build, const OutputOptions& shown, const CalibrationSweep& sweep,
                      TuningDatabase& database) {
  const rt::Context context = profiling_context(build.device);
  CompileOptions options = options_for(context, build);
  const TunedDevice device = tuned_device(context.device(), options.target);
  Measurer measurer(context, options);
  const auto keep = [&](const Trial& trial) {
    const FilesBeingWritten guard;
    database.add(device, trial);
  };
  const std::vector<CalibratedRow> rows = calibrate(options.target, std::ref(measurer), keep);
  KernelTimeModel model;
  if (sweep.contractions > 0) {
    use_rates(database.trials(device), options.target);
    model = fitted_kernel_times(context, options, sweep, shown.progress_form());
    for (const Trial& trial : trials_of(model)) keep(trial);
  }
  if (shown.json)
    print_result(as_json(device, rows, model).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  else
    print_text(device, rows, model);
  return std::all_of(rows.begin(), rows.end(), [](const CalibratedRow& row) { return row.note.empty(); }) ? 0 : 1;
}

}  // namespace oclc::tool
