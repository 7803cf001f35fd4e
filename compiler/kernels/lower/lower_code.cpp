// Users' bodies: each operand is read or written at axes of its own, which are the position that the body names.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/kernels/lower/lower_kernel.h"
#include "compiler/kernels/lower/module_lowering.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

std::vector<Expr> position_axes(KernelBuilder& b, const std::string& name, const Shape& shape, Code::Access& access) {
  std::vector<Expr> coords;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    access.axes.push_back(static_cast<int>(b.kernel.reduction.size()));
    coords.push_back(b.add_reduction(fmt::format("at_{}_{}", name, d), shape[d]));
  }
  return coords;
}

}  // namespace

void KernelBuilder::point_to(const Value* value, bool written, Code::Access& access) {
  const Storage* storage = inputs_.find_storage(value);
  OCLC_CHECK(storage, "a pointer to a value without storage");
  if (storage->strides != strides_of(value->type.shape, {}))
    throw CompileError(
        {.stage = "kernels",
         .wanted = fmt::format("'{}' row-major in memory, for POINTER({})", access.operand->name, access.operand->name),
         .found = "a part of another tensor, or another layout",
         .advice = "use LOAD and STORE, which read and write elements wherever they lie",
         .exit_code = ExitCode::unsupported});
  const Buffer& buffer = (*inputs_.buffers)[static_cast<std::size_t>(storage->buffer)];
  access.pointer = operand(storage->buffer, buffer.dtype, written, buffer.name);
  access.offset = storage->offset;
  kernel.bytes += value->type.elements() * Expr(static_cast<std::int64_t>(size_bytes(buffer.dtype)));
}

void lower_code(KernelBuilder& b, const Node& node) {
  const UserOp& own = *as_user_op(*node.op);
  b.kernel.code.emplace();
  b.kernel.code->body = body_of(node);
  b.kernel.code->space = own.space(node);
  const UserBody& body = *b.kernel.code->body;
  std::vector<Code::Access> loads, stores;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    Code::Access& access = loads.emplace_back();
    access.operand = &operand_of_input(body, i);
    const Value* value = node.inputs[i];
    if (!value) continue;
    const std::vector<Expr> coords = position_axes(b, fmt::format("x{}", i), value->type.shape, access);
    if (access.operand->pointer) b.point_to(value, false, access);
    if (access.operand->element) access.node = b.element(value, coords);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Code::Access& access = stores.emplace_back();
    access.operand = &body.outputs[i];
    const Value* value = node.output(i);
    const std::vector<Expr> coords = position_axes(b, fmt::format("y{}", i), value->type.shape, access);
    ScalarNode given;
    given.kind = ScalarNode::Kind::given;
    given.dtype = computed_as(value->type.dtype);
    for (const Expr& e : coords) given.index += e;
    access.node = b.add(std::move(given));
    b.bind(value, coords, access.node);
    if (access.operand->pointer) b.point_to(value, true, access);
  }
  b.kernel.code->loads = std::move(loads);
  b.kernel.code->stores = std::move(stores);
}

}  // namespace oclc
