// What kernels of attention share: scores and product of a step under the names of one launch's arguments, and their texts.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/codegen/launches/loop_kernel.h"
#include "compiler/codegen/text/template_text.h"

namespace oclc {

class AttentionParts {
 public:
  AttentionParts(const std::string& name, const Step& step, const Schedule& schedule, const Target& target);

 protected:
  // Sizes of groups, rows, keys, queries and values.
  void fill_sizes(const ContractionView& scores, const ContractionView& product);
  // Lines about one of the two products, whose names for sizes and coordinates end with them.
  static std::string within(const ContractionView& view, const std::string& lines);
  // Name, geometry, head and arguments of the kernel.
  void describe(const Expr& groups, int items, const std::string& schedule);
  // The tile function that template `name` becomes, and the kernel that calls it with the template's SPACE floats of local
  // memory.
  std::string tile_text(std::string_view name) const;
  std::string kernel_text(std::string_view name) const;

  const std::string name_;
  const Schedule& schedule_;
  const Target& target_;
  Kernel scores_, product_;  // with operands named as the launch's arguments
  SeveralKernels out_;
  TemplateValues values_;

 private:
  const Kernel& kernel(const Step& step) const { return schedule_.kernel(step); }
  void take(const Kernel& kernel);
  // Operands that the launch has, under the names of its arguments; the scores and their softmax are none.
  void name_operands(Kernel& kernel, int left_out);

  std::set<std::string> symbols_;
};

}  // namespace oclc
