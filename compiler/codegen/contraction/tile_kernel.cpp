#include "compiler/codegen/contraction/tile_kernel.h"

#include <fmt/format.h>

#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"

namespace oclc {

OwnConstant own_constant(std::string name, std::string buffer_name, HostTensor content) {
  Buffer buffer;
  buffer.name = std::move(buffer_name);
  buffer.kind = BufferKind::constant;
  buffer.dtype = content.dtype();
  buffer.constant = std::move(content);
  buffer.elements = Expr(buffer.constant.elements());
  return {std::move(name), std::move(buffer)};
}

GeneratedKernel assemble(const Kernel& kernel, TileKernel tile) {
  GeneratedKernel g;
  g.name = kernel.name;
  g.groups = {tile.groups};
  g.local = {1};
  g.schedule = std::move(tile.schedule);
  g.arguments = arguments_of(kernel);
  std::string tile_parameters = parameter_list(kernel, false), parameters = parameter_list(kernel, true),
              arguments = argument_list(kernel);
  for (OwnConstant& constant : tile.constants) {
    const std::string_view type = c_type(constant.buffer.dtype);
    g.arguments.push_back({.operand = static_cast<int>(kernel.operands.size() + g.packed.size())});
    g.packed.push_back(std::move(constant.buffer));
    tile_parameters += fmt::format(", __global const {}* {}", type, constant.name);
    parameters += fmt::format(", __global const {0}* {1}, const long {1}_at", type, constant.name);
    arguments += fmt::format(", {0} + {0}_at", constant.name);
  }
  g.head = kernel_head(kernel, g);
  std::string local_parameter, local_argument, local_array;
  if (!tile.local_name.empty()) {
    g.local_floats = expand_macro(tile.template_name, tile.local_macro, tile.values);
    local_parameter = fmt::format(", __local float* {}", tile.local_name);
    local_argument = ", " + tile.local_name;
    local_array = fmt::format("  __local float {}[{}];\n", tile.local_name, g.local_floats);
  }
  g.tile_source = fmt::format("void {}_tile({}, const int tile{}) {{\n{}}}\n\n", g.name, tile_parameters, local_parameter,
                              expand_tile_body(tile.template_name, tile.values));
  g.source = g.tile_source;
  g.source += fmt::format(
      "__attribute__((reqd_work_group_size(1, 1, 1)))\n__kernel void {}({}) {{\n{}  {}_tile({}, "
      "(int)get_group_id(0){});\n}}\n",
      g.name, parameters, local_array, g.name, arguments, local_argument);
  return g;
}

}  // namespace oclc
