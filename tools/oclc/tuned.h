// What was timed, for the compiler.
#pragma once
#include <string>

#include "compiler/tuning/database.h"
#include "oclc/oclc.hpp"

namespace oclc::tool {

TunedDevice tuned_device(const oclc_device_info& device, const Target& target);
// Gives `target` the rates that trials of its device hold; implausible ones are a warning.
void use_rates(const std::vector<Trial>& trials, Target& target);
// Gives `target` the choices of the database that fit it, and the rates that were calibrated on this very device. A database
// that cannot be used is a warning, a missing one an error.
void use_tuned(const std::string& database, const TunedDevice& device, Target& target);

}  // namespace oclc::tool
