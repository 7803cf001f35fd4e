#include "runtime/program/program_units.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/flat.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// PoCL 3.1 compiles about 20 KB of a plan's text in a second (Xeon of 2023, the fourteen networks of tests/models), and a
// process that does needs a second to begin with: less than this is not worth one.
constexpr std::uint64_t kLeastUnitBytes = 24 << 10;

// A program of parts with kernels of their own that is cut, and the least text of a piece: a whole of 100 KB takes NVIDIA's
// driver 580 1.5 s, kernels of its parts 0.1 to 0.4 s each. More pieces than processes do not help (14 and 20: googlenet 2.0
// to 2.3 s to the first answer instead of 1.8 to 2.0).
constexpr std::uint64_t kLeastCutBytes = 64 << 10, kLeastPieceBytes = 8 << 10;

std::string options_of(const fb::Program& program) {
  std::string options = program.options() ? program.options()->str() : "";
  if (options.find("-cl-std=") == std::string::npos) options = options.empty() ? "-cl-std=CL1.2" : "-cl-std=CL1.2 " + options;
  // Drivers print on the standard error how many warnings there were; they tell the kinds of parameters, against which launches
  // are checked, of programs that ask for it.
  return options + " -w -cl-kernel-arg-info";
}

void append(Unit& unit, const UnitPrograms& part, const fb::Plan& plan) {
  const fb::Program& program = *plan.programs()->Get(part.program);
  if (unit.programs.empty()) {
    unit.name = program.name()->str();
    unit.options = options_of(program);
    unit.instructions = program.instructions();
  } else if (unit.programs.size() == 1) {
    unit.name += ", ...";
  }
  const std::uint32_t parts = count(program.part_bytes());
  if (part.own_kernels || part.last - part.first < parts) {
    if (unit.programs.empty())
      unit.name += (program.own_kernels() ? ", kernels " : ", steps ") + std::to_string(part.first) + " to " +
                   std::to_string(part.last - 1);
    const std::string macro = " -D" + program.name()->str();
    unit.options += macro + "_FIRST=" + std::to_string(part.first) + macro + "_LAST=" + std::to_string(part.last);
  }
  for (std::uint32_t i = part.first; i < part.last; ++i) unit.text_bytes += program.part_bytes()->Get(i);
  if (parts == 0) unit.text_bytes += program.source()->size();
  unit.programs.push_back(part);
  unit.source += program.source()->str();
  if (unit.source.back() != '\n') unit.source += '\n';
}

UnitPrograms whole(const fb::Plan& plan, std::uint32_t program) {
  return {program, 0, count(plan.programs()->Get(program)->part_bytes()), false};
}

void merge(const fb::Plan& plan, const std::vector<std::uint32_t>& programs, std::size_t merged, std::vector<Unit>& units) {
  const std::size_t first = units.size();
  units.resize(first + std::min(merged, programs.size()));
  for (const std::uint32_t i : programs) {
    auto shortest = std::min_element(units.begin() + static_cast<std::ptrdiff_t>(first), units.end(),
                                     [](const Unit& a, const Unit& b) { return a.source.size() < b.source.size(); });
    append(*shortest, whole(plan, i), plan);
  }
}

// How programs are cut: what is built apart of each, and the least text of a unit.
struct Cut {
  std::uint32_t (*parts_of)(const fb::Program&);
  std::uint64_t least_bytes;
};
constexpr Cut kBetweenParts{parts_in_turn, kLeastUnitBytes};
constexpr Cut kBetweenKernels{[](const fb::Program& program) { return count(program.part_bytes()); }, kLeastPieceBytes};

// Programs without such parts come first; then each unit takes the next parts, until it has its share of all text.
void cut(const fb::Plan& plan, std::vector<std::uint32_t> programs, const Cut& how, std::size_t processes,
         std::vector<Unit>& units) {
  const auto parts_of = [&](std::uint32_t i) { return how.parts_of(*plan.programs()->Get(i)); };
  std::stable_partition(programs.begin(), programs.end(), [&](std::uint32_t i) { return parts_of(i) == 0; });
  std::uint64_t total = 0, before = 0;
  for (const std::uint32_t i : programs) {
    if (parts_of(i) == 0) total += plan.programs()->Get(i)->source()->size();
    for (std::uint32_t part = 0; part < parts_of(i); ++part) total += plan.programs()->Get(i)->part_bytes()->Get(part);
  }
  const std::size_t first = units.size();
  const std::uint64_t wanted = std::clamp<std::uint64_t>(total / how.least_bytes, 1, processes);
  // The unit of a text whose middle lies behind so many bytes.
  const auto unit_at = [&](std::uint64_t middle) {
    return std::min(wanted - 1, middle * wanted / std::max<std::uint64_t>(1, total));
  };
  std::vector<std::vector<UnitPrograms>> held(wanted);
  for (const std::uint32_t i : programs) {
    const fb::Program& program = *plan.programs()->Get(i);
    if (parts_of(i) == 0) {
      held[0].push_back(whole(plan, i));
      before += program.source()->size();
    }
    for (std::uint32_t part = 0; part < parts_of(i); ++part) {
      const std::uint64_t bytes = program.part_bytes()->Get(part);
      std::vector<UnitPrograms>& unit = held[unit_at(before + bytes / 2)];
      if (unit.empty() || unit.back().program != i) unit.push_back({i, part, part, program.own_kernels()});
      unit.back().last = part + 1;
      before += bytes;
    }
  }
  for (const std::vector<UnitPrograms>& list : held) {
    if (list.empty()) continue;
    Unit& unit = units.emplace_back();
    const std::size_t number = units.size() - 1 - first;
    unit.for_builders = number > 0;
    unit.builder = static_cast<std::uint32_t>(number > 0 ? number - 1 : 0);
    for (const UnitPrograms& part : list) append(unit, part, plan);
  }
}

}  // namespace

std::uint32_t parts_in_turn(const fb::Program& program) { return program.own_kernels() ? 0 : count(program.part_bytes()); }

bool is_cut(const fb::Program& program) { return program.own_kernels() && program.source()->size() >= kLeastCutBytes; }

std::vector<Unit> make_units(const fb::Plan& plan, std::size_t merged, std::size_t processes, Share share) {
  std::vector<Unit> units;
  std::map<std::pair<std::string, fb::Instructions>, std::vector<std::uint32_t>> groups;
  for (std::uint32_t i = 0; i < count(plan.programs()); ++i) {
    const fb::Program& program = *plan.programs()->Get(i);
    if (processes > 1 && share == Share::kernels && is_cut(program))
      cut(plan, {i}, kBetweenKernels, processes, units);
    else if (program.mergeable() && merged > 0)
      groups[{options_of(program), program.instructions()}].push_back(i);
    else
      append(units.emplace_back(), whole(plan, i), plan);
  }
  for (const auto& [kind, programs] : groups) {
    if (processes > 1 && share == Share::parts)
      cut(plan, programs, kBetweenParts, processes, units);
    else
      merge(plan, programs, processes > 1 ? programs.size() : merged, units);
  }
  return units;
}

Unit alone(const Unit& unit, std::size_t index, const fb::Plan& plan) {
  Unit result;
  append(result, unit.programs[index], plan);
  return result;
}

}  // namespace oclc::runtime
