// oclc tune --calibrate.
#pragma once
#include "compiler/tuning/database.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

// Prints each rate that was measured beside the table's, and keeps it. Exit code 1 if one could not be measured.
int calibrate_command(const BuildOptions& build, const OutputOptions& shown, TuningDatabase& database);

}  // namespace oclc::tool
