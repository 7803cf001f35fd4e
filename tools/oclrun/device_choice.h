// Which device runs a plan when the user names none.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "oclc/oclc.h"

namespace oclc::oclrun {

// A plan for `target`, a row such as "cpu-amx", among `devices`: "cpu" where the plan was made for processors and there is one,
// since a GPU's compiler may take hours for such kernels; else "", which leaves the choice to the runtime.
inline std::string device_for(std::string_view target, const std::vector<oclc_device_info>& devices) {
  const bool for_cpu = target.substr(0, target.find('-')) == "cpu";
  const auto is_cpu = [](const oclc_device_info& d) { return d.device_class == OCLC_DEVICE_CPU; };
  return for_cpu && std::any_of(devices.begin(), devices.end(), is_cpu) ? "cpu" : "";
}

}  // namespace oclc::oclrun
