#include "runtime/package/verify/verify_variables.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/package/error.h"
#include "runtime/package/expr_code.h"
#include "runtime/package/verify/verify.h"

namespace oclc::package {
namespace {

namespace fb = oclc::plan;

struct Place {
  std::int64_t begin, end;  // elements of the buffer
  const fb::Variable* variable;
};

[[noreturn]] void reject_variable(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::invalid, where + ": " + what);
}

std::string number(std::int64_t value) { return std::to_string(value); }

std::int64_t constant_value(const std::string& where, const fb::Expr& e) {
  const auto value = evaluate({e.code()->data(), e.code()->size()}, {});
  if (!value) reject_variable(where, "its expression overflows or divides by zero");
  return *value;
}

Place place(const fb::Plan& plan, const fb::Variable& v) {
  const std::string where = "variable '" + v.name()->str() + "'";
  const fb::Buffer& buffer = *plan.buffers()->Get(static_cast<std::uint32_t>(v.buffer()));
  const std::string owner = "buffer " + number(v.buffer()) + (buffer.name() ? " '" + buffer.name()->str() + "'" : "");
  if (v.dtype() != buffer.dtype())
    reject_variable(where, std::string("wanted the element type ") + fb::EnumNameDType(buffer.dtype()) + " of " + owner +
                               ", found " + fb::EnumNameDType(v.dtype()));
  std::int64_t elements = 1;
  bool overflow = false;
  for (std::uint32_t d = 0; v.shape() && d < v.shape()->size(); ++d) {
    const std::int64_t size = constant_value(where, *v.shape()->Get(d));
    if (size < 0) reject_variable(where, "dimension " + number(d) + " is negative");
    overflow = __builtin_mul_overflow(elements, size, &elements) || overflow;
  }
  const std::int64_t available =
      constant_value(where, *buffer.bytes()) / static_cast<std::int64_t>(dtype_bytes(buffer.dtype()));
  if (overflow || v.offset() < 0 || elements > available || v.offset() > available - elements)
    reject_variable(where, "its " + (overflow ? "too many" : number(elements)) + " elements from " + number(v.offset()) +
                               " on lie outside " + owner + " of " + number(available));
  return {v.offset(), v.offset() + elements, &v};
}

}  // namespace

void verify_variable_places(const fb::Plan& plan) {
  std::map<int, std::vector<Place>> places;  // by buffer
  for (std::uint32_t i = 0; plan.variables() && i < plan.variables()->size(); ++i) {
    const fb::Variable& v = *plan.variables()->Get(i);
    if (const Place p = place(plan, v); p.end > p.begin) places[v.buffer()].push_back(p);
  }
  for (auto& [buffer, list] : places) {
    std::sort(list.begin(), list.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < list.size(); ++i)
      if (list[i - 1].end > list[i].begin)
        reject_variable("buffer " + number(buffer), "its variables '" + list[i - 1].variable->name()->str() + "' and '" +
                                                        list[i].variable->name()->str() + "' overlap");
  }
}

}  // namespace oclc::package
