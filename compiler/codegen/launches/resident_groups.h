// Resident launches of devices whose groups have several work-items.
#pragma once
#include "compiler/codegen/launches/resident_kernel.h"

namespace oclc {

// As generate_resident, for NVIDIA's devices. Elsewhere groups of one launch are not known to wait for one another: there the
// source has a kernel for each kind of part, of the same arguments, see ResidentKernel::Part::own_kernel.
ResidentKernel generate_resident_groups(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                        const Target& target);

}  // namespace oclc
