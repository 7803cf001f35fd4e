// Builds the programs of a plan for a device, or takes them from the cache.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan_generated.h"
#include "runtime/device/context.h"
#include "runtime/program/builders.h"

namespace oclc::runtime {

// What a unit holds of a program: of one whose kernel has parts, those from `first` up to `last`.
struct Piece {
  std::uint32_t unit = 0;
  std::uint32_t first = 0, last = 0;
  bool own_kernels = false;  // see UnitPrograms
};

// How a unit was built.
struct BuildInfo {
  std::string name;
  std::uint64_t text_bytes = 0;
  std::uint32_t kernels = 0;
  std::uint64_t ns = 0;
  bool from_cache = false, from_plan = false;
  bool by_builder = false;
};

struct BuiltPrograms {
  std::vector<ClProgram> units;               // what was built: a program, several as one, or parts of some
  std::vector<std::vector<Piece>> pieces_of;  // of each program of the plan, in the order of their parts; at least one
  std::vector<BuildInfo> infos;               // of the units
  std::shared_ptr<Builders> builders;         // that compile kernels of these units; null: none was needed
  // Not null: these units were built without optimization, or hold the kernels of a launch's parts instead of its own, and
  // builders behind compile the optimized ones, which have their numbers, or that of the first piece.
  std::shared_ptr<Builders> behind;
  bool unoptimized = false;         // the former
  std::vector<std::string> marks;   // of the units, see is_marked; empty: there are none
  std::vector<std::uint64_t> keys;  // of the units, where they are whole, see plan_binaries.h
  std::uint32_t built = 0;          // by the driver's compiler
  std::uint32_t cached = 0;         // taken from the cache, or from the plan
};

// Several threads or processes where the driver can use them; the threads have ended on return. A build that fails is tried
// once more (PoCL's cache races between processes), then throws OCLC_E_BUILD with the first lines of the log.
// `may_be_unoptimized`: large programs that the driver has not compiled before may be built without optimization first, or in
// pieces, see `behind`.
// The plan's own binaries are taken where the context uses them.
BuiltPrograms build_programs(Context& context, const package::Package& package, bool may_be_unoptimized);
// Files beside what the driver keeps on disk say what of these programs is there: that start needs neither unoptimized kernels
// nor builders.
bool is_marked(const BuiltPrograms& programs, std::uint32_t unit, const std::string& kernel);
void leave_mark(const BuiltPrograms& programs, std::uint32_t unit, const std::string& kernel);

}  // namespace oclc::runtime
