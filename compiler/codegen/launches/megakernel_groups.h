// Megakernels of devices whose groups have several work-items.
#pragma once
#include "compiler/codegen/launches/megakernel.h"

namespace oclc {

// As generate_megakernel, for NVIDIA's devices. Elsewhere groups of one launch are not known to wait for one another: there the
// source has a kernel for each kind of part, of the same arguments, see MegakernelCode::Part::own_kernel.
MegakernelCode generate_megakernel_groups(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                          const Target& target);

}  // namespace oclc
