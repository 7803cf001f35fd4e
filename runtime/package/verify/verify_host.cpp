#include "runtime/package/verify/verify_host.h"

#include <cstdint>
#include <set>
#include <string_view>

#include "runtime/package/error.h"
#include "runtime/package/host_ops.h"

namespace oclc::package {
namespace {

namespace fb = oclc::plan;

constexpr std::uint32_t kMaxTexts = 1u << 30;

[[noreturn]] void reject(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::invalid, where + ": " + what);
}

template <class T>
std::uint32_t count(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

std::string_view text(const flatbuffers::String* string) {
  return string ? std::string_view(string->data(), string->size()) : std::string_view();
}

using Operands = flatbuffers::Vector<flatbuffers::Offset<fb::HostOperand>>;

void operands(const std::string& where, const fb::Plan& plan, const Operands* list, std::string_view kinds) {
  if (count(list) != kinds.size())
    reject(where, "wanted " + std::to_string(kinds.size()) + " operands, found " + std::to_string(count(list)));
  for (std::uint32_t i = 0; i < count(list); ++i) {
    const fb::Arg* at = list->Get(i)->at();
    const std::string what = where + " " + std::to_string(i);
    if (!at || at->kind() != fb::ArgKind::buffer) reject(what, "is not a buffer");
    if (at->buffer() < 0 || at->buffer() >= static_cast<std::int64_t>(count(plan.buffers())))
      reject(what, "buffer " + std::to_string(at->buffer()) + " of " + std::to_string(count(plan.buffers())));
    const fb::DType dtype = plan.buffers()->Get(static_cast<std::uint32_t>(at->buffer()))->dtype();
    if (dtype > fb::DType::MAX || !accepts(kinds[i], dtype))
      reject(what, "its buffer holds " + std::string(fb::EnumNameDType(dtype)) + ", which the operator does not take there");
  }
}

}  // namespace

void verify_strings(const fb::Plan& plan) {
  std::set<std::string_view> seen;
  if (count(plan.strings()) > kMaxTexts) reject("strings", "more than " + std::to_string(kMaxTexts));
  for (std::uint32_t i = 0; i < count(plan.strings()); ++i) {
    const std::string_view value = text(plan.strings()->Get(i));
    const std::string where = "string " + std::to_string(i);
    if (value.find('\0') != value.npos) reject(where, "contains a NUL");
    if (i == 0 && !value.empty()) reject(where, "is not empty");
    if (!seen.insert(value).second) reject(where, "occurs twice");
  }
  for (std::uint32_t i = 0; i < count(plan.buffers()); ++i) {
    const fb::Buffer& buffer = *plan.buffers()->Get(i);
    if (buffer.dtype() != fb::DType::string_) continue;
    if (count(plan.strings()) == 0) reject("buffer " + std::to_string(i), "holds texts in a plan without strings");
    if (buffer.kind() == fb::BufferKind::state) reject("buffer " + std::to_string(i), "state that holds texts");
  }
  for (std::uint32_t e = 0; e < count(plan.entries()); ++e)
    for (const auto* list : {plan.entries()->Get(e)->inputs(), plan.entries()->Get(e)->outputs()})
      for (std::uint32_t i = 0; i < count(list); ++i) {
        const fb::Binding& b = *list->Get(i);
        if (b.buffer() < 0 || b.buffer() >= static_cast<std::int64_t>(count(plan.buffers()))) continue;  // verify.cpp's to say
        const fb::DType held = plan.buffers()->Get(static_cast<std::uint32_t>(b.buffer()))->dtype();
        if ((b.dtype() == fb::DType::string_) != (held == fb::DType::string_))
          reject("binding '" + std::string(text(b.name())) + "'", "texts are bound to numbers, or numbers to texts");
      }
}

void verify_host_settings(const std::string& where, const fb::Plan& plan, const fb::Host& host) {
  const HostOp* op = find_host_op(text(host.op()));
  if (!op) reject(where, "unknown operator of the host '" + std::string(text(host.op())) + "'");
  if (count(host.integers()) > 0 && reinterpret_cast<std::uintptr_t>(host.integers()->data()) % alignof(std::int64_t) != 0)
    reject(where, "its numbers are not aligned");
  HostSettings settings;
  for (std::uint32_t i = 0; i < count(host.integers()); ++i) settings.integers.push_back(host.integers()->Get(i));
  for (std::uint32_t i = 0; i < count(host.texts()); ++i) settings.texts.emplace_back(text(host.texts()->Get(i)));
  if (const std::string problem = problem_of(*op, settings); !problem.empty())
    reject(where + " '" + std::string(op->name) + "'", problem);
  operands(where + " input", plan, host.inputs(), op->inputs);
  operands(where + " output", plan, host.outputs(), op->outputs);
}

}  // namespace oclc::package
