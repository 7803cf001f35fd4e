// References of matmul and conv: plain loops over contiguous copies, sums in double (integers: modulo 2^64).
#pragma once
#include <span>
#include <vector>

#include "compiler/ir/op_def.h"

namespace oclc {

std::vector<HostTensor> eval_matmul(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols);
std::vector<HostTensor> eval_conv(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols);

}  // namespace oclc
