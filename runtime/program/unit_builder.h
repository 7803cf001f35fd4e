// Builds units, or takes them from the cache.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/context.h"
#include "runtime/program/build_queue.h"
#include "runtime/program/builders.h"
#include "runtime/program/program_units.h"

namespace oclc::runtime {

// Adds to the units' options what depends on the device; once. Notes where the device lacks what a unit may use.
void complete_options(Context& context, std::vector<Unit>& units);

// The device, its driver and what kernels may use of it, a line each.
std::string device_text(Context& context);

// Makes the unit of such a binary of a plan, or says why the driver does not.
std::string take_binary(Context& context, Unit& unit, std::span<const unsigned char> binary);

// Whether its program is built for sm_90a: of source with kSm90aOption, lifted.
bool takes_sm90a(Context& context, const Unit& unit);

// What a binary of the unit depends on.
std::string unit_key(Context& context, const Unit& unit);

using MakeBuilders = std::function<std::shared_ptr<Builders>()>;

// Builds every unit; a unit's failure is kept in it. Units for builders are left to those that `builders` makes: it is asked
// when what this process builds first is not done after `patience`.
void build_units(Context& context, std::vector<Unit>& units, unsigned threads, const MakeBuilders& builders = {},
                 std::chrono::milliseconds patience = {});
// The same of units in a queue, whose processes are started if this one has not built all after `patience`. Says in each unit
// whether a process built it.
void build_units(Context& context, std::vector<Unit>& units, BuildQueue& queue, std::chrono::milliseconds patience);

}  // namespace oclc::runtime
