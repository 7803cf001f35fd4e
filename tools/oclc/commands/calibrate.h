// oclc tune --calibrate.
#pragma once
#include "compiler/tuning/database.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

// Contractions to which the times of launches are fitted; 0: none.
struct CalibrationSweep {
  int contractions = 0;
  std::uint32_t seed = 1;
};

// Prints each rate that was measured beside the table's, and keeps it. Exit code 1 if one could not be measured.
int calibrate_command(const BuildOptions& build, const OutputOptions& shown, const CalibrationSweep& sweep,
                      TuningDatabase& database);

}  // namespace oclc::tool
