#include "compiler/ops/op_list.h"

#include <map>

#include "compiler/ops/user_op.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Family = std::span<const OpDef> (*)();

constexpr Family kFamilies[] = {
    elementwise_ops, cast_ops, reduction_ops, row_ops,  contraction_ops, window_ops,   movement_ops, indexing_ops,
    generator_ops,   scan_ops, control_ops,   host_ops, training_ops,    backward_ops, lowering_ops, winograd_gradient_ops};

std::map<std::string_view, const OpDef*> index_by_name() {
  std::map<std::string_view, const OpDef*> by_name;
  for (const OpDef* def : all_ops()) {
    OCLC_CHECK(by_name.emplace(def->name, def).second, "two operators named " + std::string(def->name));
  }
  return by_name;
}

}  // namespace

const std::vector<const OpDef*>& all_ops() {
  static const std::vector<const OpDef*> all = [] {
    std::vector<const OpDef*> list;
    for (const Family family : kFamilies) {
      for (const OpDef& def : family()) list.push_back(&def);
    }
    return list;
  }();
  return all;
}

const OpDef* find_op(std::string_view name) {
  static const std::map<std::string_view, const OpDef*> by_name = index_by_name();
  const auto at = by_name.find(name);
  return at == by_name.end() ? find_user_op(name) : at->second;
}

const OpDef& op(std::string_view name) {
  const OpDef* def = find_op(name);
  OCLC_CHECK(def != nullptr, "no operator named " + std::string(name));
  return *def;
}

}  // namespace oclc
