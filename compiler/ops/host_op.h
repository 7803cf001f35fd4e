// What the runtime is told of an operator of the host.
#pragma once
#include "compiler/ir/graph.h"
#include "runtime/package/host_ops.h"

namespace oclc {

// Of a node of kind `host`.
const package::HostOp& host_op_of(const Node& node);
// The node's attributes of the names that HostOp gives.
package::HostSettings host_settings_of(const Node& node);

}  // namespace oclc
