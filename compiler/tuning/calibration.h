// Rates of a device, measured by small kernels of the compiler's own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/targets/device_rates.h"
#include "compiler/tuning/search.h"

namespace oclc {

struct CalibratedRow {
  std::string name, unit;  // a fact of the target (flops, bytes_per_second, launch_seconds) or a row of targets/costs.def
  double measured = 0, table = 0;
  std::string note{};  // why it could not be measured
};

// The cost model's choice for each job, timed in interleaved rounds, each with its least times: a machine that others share is
// slow for seconds at a time. What failed in a round has that round's note. `told`: timings done, of how many.
std::vector<Measurement> interleaved(const std::vector<TuningJob>& jobs, const Measure& measure, double give_up_seconds,
                                     const std::function<void(std::size_t, std::size_t)>& told = {});

// Measures each row, interleaved with the others. `keep` is told of a trial for each that could be: its key is
// "cost NAME".
std::vector<CalibratedRow> calibrate(const Target& target, const Measure& measure,
                                     const std::function<void(const Trial&)>& keep);
// What trials of one device say about it: of several calibrations the fastest run of each row.
DeviceRates calibrated_rates(const std::vector<Trial>& trials);
bool is_calibration(const std::string& key);

}  // namespace oclc
