#include "runtime/program/program_builder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/device/quirks.h"
#include "runtime/device/sm90a.h"
#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/package.h"
#include "runtime/program/cache_folder.h"
#include "runtime/program/plan_binaries.h"
#include "runtime/program/program_units.h"
#include "runtime/program/unit_builder.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// A program that the driver has on disk is there in 30 to 100 ms; one that it compiles takes longer. Builds of NVIDIA's driver:
// 4 to 20 and 300. Where no mark says that the driver has something of a plan, its processes begin at once.
constexpr std::chrono::milliseconds kPatience(150), kPatienceOfBuilds(50), kNoPatience(0);

// PoCL's optimiser does nothing then, and its front end little: a fifth of the time for MobileNetV2 (2.0 s to 0.5 s for its
// first ten steps, Xeon of 2023). The macro is that of templates/functions/terms.cl.
constexpr const char* kUnoptimized = " -cl-opt-disable -DOCLC_UNOPTIMIZED";

// Less text than this is optimized while another process would start.
constexpr std::uint64_t kLeastUnoptimized = 16 << 10;

std::uint32_t kernels_in(cl_program program) {
  std::size_t count = 0;
  return clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof count, &count, nullptr) == CL_SUCCESS
             ? static_cast<std::uint32_t>(count)
             : 0;
}

// Of the context's device in the list of all; nothing for a device that is not in it.
std::optional<Device> listed(cl_device_id id) {
  for (const Device& device : list_devices())
    if (device.id == id) return device;
  return std::nullopt;
}

std::string name_of_hash(const std::string& text) {
  char name[20];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(package::hash64(std::as_bytes(std::span(text)))));
  return name;
}

// How processes beside this one help, if they do.
struct Help {
  std::optional<Share> share;
  std::optional<Device> device;
  unsigned processes = 0;  // beside this one
};

Help help_of(Context& context) {
  Help help;
  // Where this process keeps what it builds in a folder of oclc's own, builders would compile kernels for nobody.
  if (has(context.quirks(), Quirk::compiles_on_one_core) && !context.cache()) help.share = Share::parts;
  const char* const off = std::getenv("CUDA_CACHE_DISABLE");
  if (has(context.quirks(), Quirk::serial_builds) && !(off && std::string_view(off) == "1")) help.share = Share::programs;
  if (help.share) help.device = listed(context.device());
  if (help.device) help.processes = BuilderProcess::available();
  return help;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// In the driver's own folder of what it compiled, so that both go together.
std::vector<std::string> marks_of(Context& context, const std::vector<Unit>& units) {
  std::vector<std::string> marks;
  for (const Unit& unit : units) marks.push_back(pocl_cache_folder() + "/oclc-" + name_of_hash(unit_key(context, unit)));
  return marks;
}

void touch(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor >= 0) ::close(descriptor);
}

// Whether most of the text is of kernels that builders can compile: the others are compiled when they first run.
bool mostly_for_builders(const std::vector<Unit>& units, const fb::Plan& plan) {
  std::uint64_t parts = 0, all = 0;
  for (const Unit& unit : units) {
    all += unit.text_bytes;
    for (const UnitPrograms& p : unit.programs)
      if (parts_in_turn(*plan.programs()->Get(p.program)) == 0) parts += plan.programs()->Get(p.program)->source()->size();
  }
  return parts * 4 <= all;
}

// What was taken or built, by program of the plan.
void fill(BuiltPrograms& result, std::vector<Unit>& units, const fb::Plan& plan, bool by_builders) {
  result.pieces_of.resize(count(plan.programs()));
  for (Unit& unit : units) {
    if (unit.failure) throw *unit.failure;
    const auto number = static_cast<std::uint32_t>(result.units.size());
    for (const UnitPrograms& p : unit.programs) result.pieces_of[p.program].push_back({number, p.first, p.last, p.own_kernels});
    (unit.from_cache || unit.from_plan ? result.cached : result.built)++;
    result.infos.push_back({unit.name, unit.text_bytes, kernels_in(unit.built.get()), unit.build_ns, unit.from_cache,
                            unit.from_plan, by_builders && unit.for_builders});
    result.units.push_back(std::move(unit.built));
    result.keys.push_back(unit.key);
  }
  for (std::vector<Piece>& pieces : result.pieces_of)
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.first < b.first; });
}

BuildJob job_of(Context& context, const Unit& unit, std::uint32_t number, std::uint32_t process) {
  const bool lifted = takes_sm90a(context, unit);
  return {number, unit.options + std::string(lifted ? kSm90aOption : ""), unit.source, process, lifted};
}

// About what the driver will read: a text for sm_90a has a branch for other devices, which is as long.
std::uint64_t read_bytes(const Unit& unit) {
  return unit.instructions == fb::Instructions::sm90a ? unit.text_bytes / 2 : unit.text_bytes;
}

// The longest first: then those that are built last differ least in their end.
std::vector<BuildJob> jobs_in_order(Context& context, const std::vector<Unit>& units) {
  std::vector<std::uint32_t> order(units.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return read_bytes(units[a]) > read_bytes(units[b]); });
  std::vector<BuildJob> jobs;
  for (const std::uint32_t unit : order) jobs.push_back(job_of(context, units[unit], unit, 0));
  return jobs;
}

// Whether the unit is one program, which can be cut between its kernels.
bool is_long(const Unit& unit, const fb::Plan& plan) {
  return unit.programs.size() == 1 && is_cut(*plan.programs()->Get(unit.programs[0].program));
}

bool is_cached(Context& context, const Unit& unit) {
  return context.cache() && exists(context.cache()->path_of(unit_key(context, unit)));
}

// Whether the driver may have all on disk: it goes into oclc's cache as well, where there is one.
bool may_be_on_disk(Context& context, const std::vector<Unit>& units) {
  return !context.cache() || !context.cache()->enabled() ||
         std::all_of(units.begin(), units.end(), [&](const Unit& unit) { return is_cached(context, unit); });
}

// Whether the driver will compile such a one.
bool builds_long(Context& context, const std::vector<Unit>& units, const fb::Plan& plan) {
  return std::any_of(units.begin(), units.end(),
                     [&](const Unit& unit) { return is_long(unit, plan) && !is_cached(context, unit); });
}

// The programs that `pieces` have cut, as a whole, under the number of their first piece.
std::vector<BuildJob> jobs_behind(Context& context, const std::vector<Unit>& wholes, const std::vector<Unit>& pieces,
                                  const fb::Plan& plan, unsigned processes) {
  std::vector<BuildJob> jobs;
  for (const Unit& unit : wholes) {
    if (!is_long(unit, plan)) continue;
    const auto first = std::find_if(pieces.begin(), pieces.end(), [&](const Unit& piece) {
      return piece.programs[0].program == unit.programs[0].program && piece.programs[0].first == 0;
    });
    jobs.push_back(job_of(context, unit, static_cast<std::uint32_t>(first - pieces.begin()),
                          static_cast<std::uint32_t>(jobs.size() % processes)));
  }
  return jobs;
}

// Programs that a merged unit did not let build are built by themselves: then the message names the one at fault. Whether there
// are any.
bool build_apart(Context& context, const fb::Plan& plan, std::vector<Unit>& units, unsigned threads) {
  std::vector<Unit> apart;
  std::erase_if(units, [&](const Unit& unit) {
    if (!unit.failure || unit.programs.size() == 1 || unit.failure->status() != OCLC_E_BUILD) return false;
    for (std::size_t i = 0; i < unit.programs.size(); ++i) apart.push_back(alone(unit, i, plan));
    return true;
  });
  if (apart.empty()) return false;
  complete_options(context, apart);
  build_units(context, apart, threads);
  std::move(apart.begin(), apart.end(), std::back_inserter(units));
  return true;
}

// Builds the units with other processes where those share whole programs; false: they do not.
bool build_from_queue(Context& context, std::vector<Unit>& units, const Help& help, const Builders::Tell& tell) {
  if (help.share != Share::programs || help.processes == 0 || units.size() < 2) return false;
  BuildQueue queue(*help.device, jobs_in_order(context, units), help.processes, tell);
  build_units(context, units, queue, may_be_on_disk(context, units) ? kPatienceOfBuilds : kNoPatience);
  return true;
}

}  // namespace

BuiltPrograms build_programs(Context& context, const package::Package& package, bool may_be_unoptimized) {
  const fb::Plan& plan = package.plan();
  const bool whole = context.builds_whole();
  if (context.uses_binaries() && !whole && (package.binaries() || !package.problem_of_binaries().empty())) {
    std::vector<Unit> units = whole_units(context, plan);
    if (take_binaries(context, units, package)) {
      BuiltPrograms taken;
      fill(taken, units, plan, false);
      return taken;
    }
  }
  const bool serial = has(context.quirks(), Quirk::serial_compiler);
  const unsigned threads = serial ? 1 : std::max(1u, std::thread::hardware_concurrency());
  const Help help = whole ? Help() : help_of(context);
  const bool shares_parts = help.share == Share::parts;
  std::vector<Unit> units =
      whole ? whole_units(context, plan) : make_units(plan, threads, help.processes + 1, help.share.value_or(Share::parts));
  if (!whole) complete_options(context, units);
  BuiltPrograms result;
  bool marked = false, started = false;
  std::vector<std::string> own_marks;  // of the units as they are built here
  const auto jobs_of = [&](bool all) {
    std::vector<BuildJob> jobs;
    for (std::uint32_t i = 0; i < units.size(); ++i) {
      if (all || units[i].for_builders)
        jobs.push_back(job_of(context, units[i], i, all ? i % (help.processes + 1) : units[i].builder));
    }
    return jobs;
  };
  const auto tell = [&context](const std::string& text) { context.warn_once(text); };
  if (may_be_unoptimized && help.share == Share::programs && help.processes > 0 && builds_long(context, units, plan)) {
    std::vector<Unit> pieces = make_units(plan, threads, help.processes + 1, Share::kernels);
    complete_options(context, pieces);
    result.behind = std::make_shared<Builders>(*help.device, jobs_behind(context, units, pieces, plan, help.processes + 1),
                                               Builders::Work::programs, Builders::Pace::behind, tell);
    units = std::move(pieces);
  }
  const bool alone_and_long = units.size() == 1 && units[0].text_bytes >= kLeastUnoptimized;
  if (shares_parts && help.processes > 0 && (units.size() > 1 || alone_and_long)) {
    using Work = Builders::Work;
    result.marks = marks_of(context, units);
    marked = std::all_of(result.marks.begin(), result.marks.end(), exists);
    if (may_be_unoptimized && !marked && mostly_for_builders(units, plan)) {
      result.behind =
          std::make_shared<Builders>(*help.device, jobs_of(true), Work::programs_and_kernels, Builders::Pace::behind, tell);
      for (Unit& unit : units) unit.options += kUnoptimized;
    }
    own_marks = result.behind ? marks_of(context, units) : result.marks;
    result.builders =
        std::make_shared<Builders>(*help.device, jobs_of(false), Work::programs_and_kernels, Builders::Pace::at_once, tell);
  }
  // What the driver has on disk is there sooner than a process that would build it.
  MakeBuilders start;
  if (result.builders && !marked)
    start = [&] {
      result.builders->start();
      started = true;
      return result.builders;
    };
  if (build_from_queue(context, units, help, tell)) {
    started = true;
  } else {
    const bool is_known = own_marks.empty() || std::any_of(own_marks.begin(), own_marks.end(), exists);
    build_units(context, units, threads, start, is_known ? kPatience : kNoPatience);
  }

  const auto failed = [](const Unit& unit) { return unit.failure.has_value(); };
  if (result.behind && std::any_of(units.begin(), units.end(), failed)) return build_programs(context, package, false);
  result.unoptimized = result.behind && shares_parts;
  if (result.unoptimized) std::for_each(own_marks.begin(), own_marks.end(), touch);
  if (build_apart(context, plan, units, threads)) {
    result.builders.reset();  // they number units as they were
    result.marks.clear();
  }
  context.flush_warnings();

  fill(result, units, plan, started);
  return result;
}

bool is_marked(const BuiltPrograms& programs, std::uint32_t unit, const std::string& kernel) {
  return !programs.marks.empty() && exists(programs.marks[unit] + "-" + name_of_hash(kernel));
}

void leave_mark(const BuiltPrograms& programs, std::uint32_t unit, const std::string& kernel) {
  if (programs.marks.empty() || programs.behind) return;
  touch(programs.marks[unit]);
  touch(programs.marks[unit] + "-" + name_of_hash(kernel));
}

}  // namespace oclc::runtime
