// Binaries of programs that a plan holds: what a driver made of them before, so that nothing is compiled.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/package/package.h"
#include "runtime/program/program_builder.h"
#include "runtime/program/program_units.h"

namespace oclc::runtime {

// The units that binaries are made of, and keys of theirs: as few as there can be, so that they do not depend on the machine's
// cores.
std::vector<Unit> whole_units(Context& context, const oclc::plan::Plan& plan);

// Takes every unit from the plan's binaries of the context's device. False, and a note on the context, if one is missing or
// refused: then the units are not to be used.
bool take_binaries(Context& context, std::vector<Unit>& units, const package::Package& package);

// A FlatBuffer of oclc::plan::Binaries: those of the built programs for this device, and the package's for others.
// Failure(OCLC_E_UNSUPPORTED) if the driver gives none.
std::vector<std::uint8_t> make_binaries(Context& context, const BuiltPrograms& programs, const package::Package& package);

}  // namespace oclc::runtime
