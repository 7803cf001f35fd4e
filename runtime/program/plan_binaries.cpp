#include "runtime/program/plan_binaries.h"

#include <span>
#include <utility>

#include "runtime/device/sm90a.h"
#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/program/program_binary.h"
#include "runtime/program/unit_builder.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

std::uint64_t key_of(Context& context, const std::string& device, const Unit& unit) {
  const std::string text =
      device + unit.options + std::string(takes_sm90a(context, unit) ? kSm90aOption : "") + '\n' + unit.source;
  return package::hash64(std::as_bytes(std::span(text)));
}

const fb::Binary* find(const fb::Binaries& binaries, const std::string& device, std::uint64_t key) {
  for (std::uint32_t i = 0; i < count(binaries.rows()); ++i) {
    const fb::Binary* row = binaries.rows()->Get(i);
    if (row->key() == key && row->device() && row->device()->string_view() == device && row->bytes()) return row;
  }
  return nullptr;
}

}  // namespace

std::vector<Unit> whole_units(Context& context, const fb::Plan& plan) {
  std::vector<Unit> units = make_units(plan, 1, 1);
  complete_options(context, units);
  const std::string device = device_text(context);
  for (Unit& unit : units) unit.key = key_of(context, device, unit);
  return units;
}

bool take_binaries(Context& context, std::vector<Unit>& units, const package::Package& package) {
  const auto refused = [&](const std::string& why) {
    context.message(OCLC_NOTE, package.name() + ": the plan's binaries are not used, its programs are compiled: " + why);
    return false;
  };
  if (!package.problem_of_binaries().empty()) return refused(package.problem_of_binaries());
  if (!package.binaries()) return false;
  const std::string device = device_text(context);
  for (Unit& unit : units) {
    const fb::Binary* row = find(*package.binaries(), device, unit.key);
    if (!row)
      return refused(std::string("they are of other devices, drivers or options than this one ('") + context.facts().name +
                     "', driver " + context.facts().driver + ")");
    const std::string why = take_binary(context, unit, {row->bytes()->data(), row->bytes()->size()});
    if (!why.empty()) return refused("the driver does not take that of program '" + unit.name + "': " + why);
  }
  return true;
}

std::vector<std::uint8_t> make_binaries(Context& context, const BuiltPrograms& programs, const package::Package& package) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::Binary>> rows;
  const std::string device = device_text(context);
  for (std::uint32_t i = 0; package.binaries() && i < count(package.binaries()->rows()); ++i) {
    const fb::Binary* row = package.binaries()->rows()->Get(i);
    if (!row->device() || !row->bytes() || row->device()->string_view() == device) continue;
    rows.push_back(fb::CreateBinary(builder, builder.CreateString(row->device()->string_view()), row->key(),
                                    builder.CreateVector(row->bytes()->data(), row->bytes()->size())));
  }
  for (std::size_t i = 0; i < programs.units.size(); ++i) {
    const std::vector<unsigned char> binary = binary_of(programs.units[i].get());
    if (binary.empty())
      throw Failure(OCLC_E_UNSUPPORTED, std::string("device '") + context.facts().name + "': its driver (" +
                                            context.facts().platform_name + ") gives no binary of program '" +
                                            programs.infos[i].name + "'");
    rows.push_back(fb::CreateBinary(builder, builder.CreateString(device), programs.keys[i],
                                    builder.CreateVector(binary.data(), binary.size())));
  }
  builder.Finish(fb::CreateBinaries(builder, builder.CreateVector(rows)));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

}  // namespace oclc::runtime
