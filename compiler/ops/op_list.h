// The list of core operators. Each family is one file and gives a table; op_list.cpp names the tables.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/op_def.h"

namespace oclc {

// The operator of that name; InternalError if there is none.
const OpDef& op(std::string_view name);
// The same, null if there is none. Users' operators (user_op.h) are found behind those of the list.
const OpDef* find_op(std::string_view name);
// All operators, in the order of the families' tables.
const std::vector<const OpDef*>& all_ops();

// The families.
std::span<const OpDef> elementwise_ops();
std::span<const OpDef> cast_ops();  // elementwise, but not a function of one dtype: cast
std::span<const OpDef> reduction_ops();
std::span<const OpDef> row_ops();
std::span<const OpDef> contraction_ops();
std::span<const OpDef> window_ops();
std::span<const OpDef> movement_ops();
std::span<const OpDef> indexing_ops();
std::span<const OpDef> generator_ops();
std::span<const OpDef> scan_ops();
std::span<const OpDef> control_ops();
std::span<const OpDef> host_ops();
std::span<const OpDef> training_ops();
std::span<const OpDef> backward_ops();           // of which gradients are made
std::span<const OpDef> lowering_ops();           // made by passes
std::span<const OpDef> winograd_gradient_ops();  // made by passes

}  // namespace oclc
