#include "compiler/codegen/text/half.h"

#include <fmt/format.h>

namespace oclc {
namespace {

std::string place(const std::string& name, const std::string& at) { return at == "0" ? name : name + " + " + at; }

}  // namespace

std::string half_load(DType dtype, const std::string& name, const std::string& at, const EmitMode& mode) {
  const std::string_view type = name_of(dtype);
  if (mode.width == 1) return fmt::format("oclc_from_{}({}[{}])", type, name, at);
  if (!mode.lanes_left.empty())
    return fmt::format("oclc_from_{}(oclc_load_half_lanes{}({}, {}))", type, mode.width, place(name, at), mode.lanes_left);
  return fmt::format("oclc_from_{}(vload{}(0, {}))", type, mode.width, place(name, at));
}

std::string half_round(DType dtype, const std::string& value) {
  return fmt::format("oclc_from_{0}(oclc_to_{0}({1}))", name_of(dtype), value);
}

std::string half_store(DType dtype, const std::string& value, const std::string& name, const std::string& at,
                       const EmitMode& mode) {
  const std::string rounded = fmt::format("oclc_to_{}({})", name_of(dtype), value);
  if (mode.width == 1) return fmt::format("{}[{}] = {};", name, at, rounded);
  if (!mode.lanes_left.empty())
    return fmt::format("oclc_store_half_lanes{}({}, {}, {});", mode.width, rounded, place(name, at), mode.lanes_left);
  return fmt::format("oclc_store({}, {});", rounded, place(name, at));
}

}  // namespace oclc
