// From a program to a graph of core operators.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "frontends/pt2/import.h"
#include "frontends/pt2/program.h"

namespace oclc::pt2 {

// The tensor of a parameter, buffer or constant by its name in the model; nothing if the program brings none: then it is an
// input.
using FindWeight = std::function<std::optional<HostTensor>(const ProgramInput&)>;

// CompileError (unsupported) that lists every operator that is not read, with the modules that use it.
std::unique_ptr<Module> lower_program(const Program& program, const FindWeight& weight, const Pt2Options& options);

}  // namespace oclc::pt2
