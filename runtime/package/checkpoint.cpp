#include "runtime/package/checkpoint.h"

#include <algorithm>
#include <map>

#include "runtime/package/expr_code.h"
#include "runtime/package/verify/verify.h"
#include "runtime/package/writer.h"

namespace oclc::package {
namespace {

namespace fb = oclc::plan;

std::uint32_t count(const fb::Plan& plan) { return plan.variables() ? plan.variables()->size() : 0; }

// The verifier has seen that it is constant.
std::int64_t value_of(const fb::Expr& e) { return *evaluate({e.code()->data(), e.code()->size()}, {}); }

std::unique_ptr<fb::ExprT> literal(std::int64_t value) {
  auto e = std::make_unique<fb::ExprT>();
  e->code = {static_cast<std::int64_t>(ExprOp::constant), value};
  return e;
}

std::map<std::string, const fb::Variable*> by_name(const fb::Plan& plan) {
  std::map<std::string, const fb::Variable*> names;
  for (std::uint32_t i = 0; i < count(plan); ++i) names[plan.variables()->Get(i)->name()->str()] = plan.variables()->Get(i);
  return names;
}

}  // namespace

std::string variable_type_text(const fb::Variable& variable) {
  std::string text = std::string(fb::EnumNameDType(variable.dtype())) + "[";
  for (std::uint32_t d = 0; variable.shape() && d < variable.shape()->size(); ++d)
    text += (d ? ", " : "") + std::to_string(value_of(*variable.shape()->Get(d)));
  return text + "]";
}

std::uint64_t variable_bytes(const fb::Variable& variable) {
  std::uint64_t bytes = dtype_bytes(variable.dtype());
  for (std::uint32_t d = 0; variable.shape() && d < variable.shape()->size(); ++d)
    bytes *= static_cast<std::uint64_t>(value_of(*variable.shape()->Get(d)));
  return bytes;
}

std::uint64_t state_identity(const fb::Plan& plan) {
  std::string text;
  for (const auto& [name, variable] : by_name(plan)) text += name + '\0' + variable_type_text(*variable) + '\0';
  return hash64(std::as_bytes(std::span(text)));
}

void write_checkpoint(const std::string& path, const fb::Plan& plan, std::uint64_t steps, const ReadVariable& read) {
  fb::PlanT file;
  if (plan.model()) file.model = plan.model()->str();
  if (plan.producer()) file.producer = plan.producer()->str();
  file.checkpoint = std::make_unique<fb::CheckpointT>();
  file.checkpoint->identity = state_identity(plan);
  file.checkpoint->steps = steps;
  ConstantSection section;
  for (std::uint32_t i = 0; i < count(plan); ++i) {
    const fb::Variable& source = *plan.variables()->Get(i);
    const std::uint64_t bytes = variable_bytes(source);
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = source.name()->str();
    buffer->kind = fb::BufferKind::state;
    buffer->dtype = source.dtype();
    buffer->bytes = literal(static_cast<std::int64_t>(bytes));
    buffer->has_initial = true;
    buffer->constant_offset =
        section.add(bytes, [&read, i](std::uint64_t begin, std::span<std::byte> out) { read(i, begin, out); });
    auto variable = std::make_unique<fb::VariableT>();
    variable->name = buffer->name;
    variable->dtype = buffer->dtype;
    variable->buffer = static_cast<int>(i);
    for (std::uint32_t d = 0; source.shape() && d < source.shape()->size(); ++d)
      variable->shape.push_back(literal(value_of(*source.shape()->Get(d))));
    file.buffers.push_back(std::move(buffer));
    file.variables.push_back(std::move(variable));
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &file));
  write_package(path, {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()}, section);
}

Checkpoint Checkpoint::open(const std::string& path) {
  Checkpoint result;
  result.package_ = Package::open(path, Residence::copied, "checkpoint");
  const fb::Plan& plan = result.plan();
  if (!plan.checkpoint()) throw Error(ErrorKind::corrupt, path + ": not a checkpoint: it is a plan");
  for (std::uint32_t i = 0; i < count(plan); ++i) {
    const fb::Variable& v = *plan.variables()->Get(i);
    if (!plan.buffers()->Get(static_cast<std::uint32_t>(v.buffer()))->has_initial())
      throw Error(ErrorKind::invalid, path + ": invalid checkpoint: variable '" + v.name()->str() + "' has no value");
  }
  if (plan.checkpoint()->identity() != state_identity(plan))
    throw Error(ErrorKind::invalid, path + ": invalid checkpoint: its identity is not that of its variables");
  return result;
}

std::span<const std::byte> Checkpoint::value(const fb::Variable& v) const {
  const fb::Buffer& buffer = *plan().buffers()->Get(static_cast<std::uint32_t>(v.buffer()));
  const std::uint64_t begin = buffer.constant_offset() + static_cast<std::uint64_t>(v.offset()) * dtype_bytes(v.dtype());
  return package_->constants().subspan(begin, variable_bytes(v));
}

std::vector<std::span<const std::byte>> Checkpoint::values_for(const fb::Plan& wanted) const {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::invalid, package_->name() + ": a checkpoint of another model: " + what);
  };
  const auto known = by_name(plan());
  std::vector<std::span<const std::byte>> values;
  for (std::uint32_t i = 0; i < count(wanted); ++i) {
    const fb::Variable& v = *wanted.variables()->Get(i);
    const auto found = known.find(v.name()->str());
    if (found == known.end()) refuse("it has no variable '" + v.name()->str() + "'");
    const std::string here = variable_type_text(v);
    const std::string there = variable_type_text(*found->second);
    if (here != there) refuse("variable '" + v.name()->str() + "' is " + there + ", wanted " + here);
    values.push_back(value(*found->second));
  }
  const auto names = by_name(wanted);
  for (const auto& [name, variable] : known)
    if (!names.count(name)) refuse("it has variable '" + name + "', which the plan lacks");
  return values;
}

}  // namespace oclc::package
