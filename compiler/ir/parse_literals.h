// What stands for itself in the text form: expressions, types, layouts, tensors, attributes.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/scanner.h"

namespace oclc {

// Each reads one from the scanner; CompileError of stage "parse" if it is malformed.
class Literals {
 public:
  explicit Literals(Scanner& in) : in_(in) {}

  std::int64_t integer();
  // Of a symbol: "in [2, 8]", ">= 0", or the usual ones where neither follows.
  std::pair<std::int64_t, std::int64_t> bounds();
  // `text` is what the scanner has read.
  Expr expression(std::string_view text);
  // Those of a list, which the scanner has read.
  std::vector<Expr> expressions(std::string_view text);
  TensorType type();
  // Row-major unless an order follows.
  Layout layout(std::size_t rank);
  HostTensor tensor() { return payload(type()); }
  // A tensor of that type, which is constant.
  HostTensor zeros(const TensorType& type);
  // A tensor after its element type and shape.
  HostTensor payload(const TensorType& type);
  Attribute attribute();

  Substitution symbols;  // that expressions may name

 private:
  void texts(HostTensor& tensor);
  void set(HostTensor& tensor, std::int64_t i, std::string_view text);
  Attribute list();

  Scanner& in_;
};

}  // namespace oclc
