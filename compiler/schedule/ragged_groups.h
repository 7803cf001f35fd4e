// Ragged horizontal grouping: kernels that are equal but for sizes, places and numbers, and of which none needs another, become
// one launch of one text with a table of members. A model of many small parts of one kind takes a launch, and a program's text,
// for each kind in place of one for each part.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes groups (RaggedStep) of the kernels of one family (kernels/ragged_family.h) that are ready at the same time: what needs
// no group is done as soon as it can be, then the family with the most members. Outside of loops, for kernels of known cost
// that take no more than a few launches' time, whose sizes are known before a run, and where the most memory that is alive at
// once grows by a hundredth and what second-level caches hold. Users' bodies are grouped from two on unless they say `ragged =
// false`, other kernels where the launches and their memory objects that a group saves, or parts of a launch on a CPU, cost
// more than a text that knows no sizes.
void ragged_groups(Schedule& schedule, const ScheduleContext& context);

// What is wrong with a group, empty if nothing is.
std::string problem_of_group(const Schedule& schedule, const RaggedStep& group);

}  // namespace oclc
