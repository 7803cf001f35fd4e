// Removes nodes that reach no output. Without it, shape arithmetic and replaced nodes would be compiled to kernels.
#include "compiler/passes/pipeline/pass.h"

namespace oclc {

bool dce(Graph& graph, const PassContext&) { return graph.erase_dead(); }

}  // namespace oclc
