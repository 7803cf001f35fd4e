// Rates of one device as `oclc tune --calibrate` measured them, in place of its row's.
#pragma once
#include "compiler/targets/target.h"

namespace oclc {

struct DeviceRates {
  double flops = 0, bytes_per_second = 0, launch_seconds = 0;  // as in Target; 0: not measured
};

// Takes what was measured. A rate that is a hundred times its row's or a hundredth is a mistake of the measurement and is not
// taken. True if all that was measured was.
bool set_rates(Target& target, const DeviceRates& rates);

}  // namespace oclc
