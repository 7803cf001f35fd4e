#include "compiler/training/refittable.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/error.h"
#include "compiler/training/training.h"

namespace oclc {

void make_refittable(Module& module) {
  const auto refuse = [](std::string wanted, std::string found) {
    throw CompileError(
        {.stage = "refit", .wanted = std::move(wanted), .found = std::move(found), .exit_code = ExitCode::usage});
  };
  if (module.states.empty())
    refuse("a model with weights for --refit: floating-point tensors of rank 1 or more that the file holds", "none");
  for (const auto& entry : module.entries) {
    for (const auto& [name, value] : entry->outputs()) {
      const auto same = [&, &output = name](const StateVariable& state) { return state.name == output; };
      if (std::any_of(module.states.begin(), module.states.end(), same))
        refuse("outputs whose names no weights have for --refit", fmt::format("output '{}'", name));
    }
    expand_training_layers(*entry);
  }
}

}  // namespace oclc
