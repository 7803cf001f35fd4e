// Reads the text form of text.h. Beyond what text.h prints, the types of nodes may be left out and a tensor may be `random
// seed`.
#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "compiler/ir/graph.h"

namespace oclc {

// Finds operators by name; null: unknown.
using OpLookup = std::function<const OpDef*(std::string_view)>;

// CompileError of stage "parse" naming the line if the text is malformed, names an unknown operator or value, states another
// type than the operator infers, or holds a tensor by its hash alone.
std::unique_ptr<Graph> parse_graph(std::string_view text, const OpLookup& find_op);
Module parse_module(std::string_view text, const OpLookup& find_op);

}  // namespace oclc
