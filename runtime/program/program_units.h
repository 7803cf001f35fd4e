// What is built as one: programs of a plan that go together, or parts of their kernels.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan_generated.h"
#include "runtime/failure.h"
#include "runtime/handles.h"

namespace oclc::runtime {

// A program in a unit; of one whose kernel has parts, those from `first` up to `last`, or so many of their own kernels.
struct UnitPrograms {
  std::uint32_t program = 0;
  std::uint32_t first = 0, last = 0;
  bool own_kernels = false;  // these, and not the kernel of all parts
};

struct Unit {
  std::string name;
  std::string source;
  std::string options;
  oclc::plan::Instructions instructions = oclc::plan::Instructions::opencl_c;
  std::vector<UnitPrograms> programs;
  bool for_builders = false;     // a process beside this one builds it or compiles its kernels, see builders.h
  std::uint32_t builder = 0;     // that process, where parts are shared
  std::uint64_t text_bytes = 0;  // of what it holds of its source

  std::uint64_t key = 0;  // of binaries in plans, see plan_binaries.h

  ClProgram built;
  bool from_cache = false, from_plan = false;  // a binary that the cache, or the plan itself, held
  std::uint64_t build_ns = 0;
  std::optional<Failure> failure;
};

// How a plan's programs are partitioned over processes that compile in parallel.
enum class Share {
  parts,     // kernels of several parts are cut, for drivers that compile a kernel when it first runs
  programs,  // programs stay whole, for drivers that compile all kernels of a build
  kernels    // likewise, but that programs of parts with kernels of their own are cut between these if they are long
};

// One unit per program, mergeable ones spread over `merged` units of about equal length per set of options and instructions.
// With `processes` > 1 that compile in parallel, of which the first is this one: where they share parts, mergeable programs
// become up to as many units of about equal cost, and all but the first hold parts alone; where they share programs, each is a
// unit; where they share kernels, a long one of parts with kernels of their own is several.
std::vector<Unit> make_units(const oclc::plan::Plan& plan, std::size_t merged, std::size_t processes = 1,
                             Share share = Share::parts);
// How many parts of a program's kernel can be built apart from others: none of those with kernels of their own.
std::uint32_t parts_in_turn(const oclc::plan::Program& program);
// Whether a program is cut where kernels are shared.
bool is_cut(const oclc::plan::Program& program);
// The unit of what another one holds of one of its programs.
Unit alone(const Unit& unit, std::size_t index, const oclc::plan::Plan& plan);

}  // namespace oclc::runtime
