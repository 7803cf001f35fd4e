// State that feeds itself: an output of one run is an input of the next and stays on the device in between.
#pragma once
#include <span>
#include <string>

#include "compiler/ir/graph.h"

namespace oclc {

struct Carry {
  std::string output, input;
  bool keeps_output = true;  // false: the output is state alone, and no output of the plan
};

// Makes each input a state of its name, zeros at first, which takes its output's value at the end of a run. CompileError where
// the module has no such input or output, where their types differ or depend on dimensions that are not known, where one is
// carried twice, and where the module trains.
void carry_outputs(Module& module, std::span<const Carry> carries);

// Does it hold state that is not carried: parameters, and what an optimizer keeps.
bool holds_weights(const Module& module);
// Does an entry change such state.
bool trains(const Module& module);
// Does it hold such state that no entry changes, see make_refittable().
bool is_refittable(const Module& module);

}  // namespace oclc
