#include "tools/oclrun/checkpoint.h"

#include <cstring>
#include <vector>

#include "runtime/package/expr_code.h"
#include "runtime/package/package.h"
#include "runtime/package/verify.h"
#include "runtime/package/writer.h"
#include "tools/io/tensor.h"

namespace oclc::oclrun {
namespace {

namespace fb = oclc::plan;

std::unique_ptr<fb::ExprT> literal(std::int64_t value) {
  auto e = std::make_unique<fb::ExprT>();
  e->code = {static_cast<std::int64_t>(package::ExprOp::constant), value};
  return e;
}

// State has static shapes: its dimensions' texts are numbers.
std::vector<std::int64_t> static_shape(const oclc_binding_info& variable) {
  std::vector<std::int64_t> shape;
  for (const char* at = variable.shape_text; *at; ++at)
    if (*at >= '0' && *at <= '9') {
      char* end = nullptr;
      shape.push_back(std::strtoll(at, &end, 10));
      at = end - 1;
    }
  return shape;
}

const fb::Variable* find(const fb::Plan& plan, const std::string& name) {
  for (std::uint32_t i = 0; plan.variables() && i < plan.variables()->size(); ++i)
    if (plan.variables()->Get(i)->name()->str() == name) return plan.variables()->Get(i);
  return nullptr;
}

bool same_shape(const fb::Variable& variable, const std::vector<std::int64_t>& shape) {
  const std::uint32_t rank = variable.shape() ? variable.shape()->size() : 0;
  if (rank != shape.size()) return false;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const auto* code = variable.shape()->Get(d)->code();
    if (package::evaluate({code->data(), code->size()}, {}) != shape[d]) return false;
  }
  return true;
}

}  // namespace

void save_state(const std::string& path, const rt::Plan& plan, rt::Session& session) {
  fb::PlanT checkpoint;
  checkpoint.model = plan.info().model;
  checkpoint.producer = std::string("oclrun ") + oclc_version();
  checkpoint.target = "checkpoint";
  package::ConstantSection section;
  std::vector<std::vector<std::byte>> values;
  for (const oclc_binding_info& info : plan.variables()) {
    const auto shape = static_shape(info);
    const std::uint64_t bytes = io::tensor_bytes(info.name, info.dtype, shape);
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = info.name;
    buffer->kind = fb::BufferKind::state;
    buffer->dtype = static_cast<fb::DType>(info.dtype);
    buffer->bytes = literal(static_cast<std::int64_t>(bytes));
    buffer->has_initial = true;
    values.emplace_back(bytes);
    session.read_variable(info.name, values.back().data(), bytes);
    buffer->constant_offset = section.add(values.back());
    auto variable = std::make_unique<fb::VariableT>();
    variable->name = info.name;
    variable->dtype = buffer->dtype;
    variable->buffer = static_cast<int>(checkpoint.buffers.size());
    for (const std::int64_t d : shape) variable->shape.push_back(literal(d));
    checkpoint.buffers.push_back(std::move(buffer));
    checkpoint.variables.push_back(std::move(variable));
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &checkpoint));
  try {
    package::write_package(path, {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()}, section);
  } catch (const package::Error& error) {
    throw io::FileError(io::FileProblem::io, error.what());
  }
}

void load_state(const std::string& path, const rt::Plan& plan, rt::Session& session) {
  std::shared_ptr<const package::Package> file;
  try {
    file = package::Package::open(path);
  } catch (const package::Error& error) {
    throw io::FileError(error.kind() == package::ErrorKind::io ? io::FileProblem::io : io::FileProblem::contents, error.what());
  }
  const auto bad = [&](const std::string& what) { throw io::FileError(io::FileProblem::contents, path + ": " + what); };
  std::vector<std::span<const std::byte>> values;
  const auto variables = plan.variables();
  for (const oclc_binding_info& info : variables) {
    const std::string name = info.name;
    const fb::Variable* variable = find(file->plan(), name);
    if (!variable) bad("the checkpoint has no variable '" + name + "'");
    const fb::Buffer& buffer = *file->plan().buffers()->Get(static_cast<std::uint32_t>(variable->buffer()));
    const auto shape = static_shape(info);
    const std::uint64_t bytes = io::tensor_bytes(name, info.dtype, shape);
    const auto size = package::evaluate({buffer.bytes()->code()->data(), buffer.bytes()->code()->size()}, {});
    if (variable->dtype() != static_cast<fb::DType>(info.dtype) || !same_shape(*variable, shape) || !buffer.has_initial() ||
        size != static_cast<std::int64_t>(bytes))
      bad("variable '" + name + "' differs from the plan's, which is " + oclc_dtype_name(info.dtype) + " " + info.shape_text);
    values.push_back(file->constants().subspan(buffer.constant_offset(), bytes));
  }
  for (std::size_t i = 0; i < values.size(); ++i) session.write_variable(variables[i].name, values[i].data(), values[i].size());
}

}  // namespace oclc::oclrun
