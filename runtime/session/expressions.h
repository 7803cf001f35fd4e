// Expressions of a plan at run time.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "plan_generated.h"

namespace oclc::runtime {

// Value of `e`; throws OCLC_E_BINDING naming `what` if it overflows or divides by 0 or less. An absent expression is
// `otherwise`.
std::int64_t evaluate(const oclc::plan::Expr* e, std::span<const std::int64_t> symbols, const char* what,
                      std::int64_t otherwise = 0);

// The symbol that `e` consists of, or -1.
int plain_symbol(const oclc::plan::Expr* e);

// Calls `use(index)` for each symbol of `e`.
template <class F>
void each_symbol(const oclc::plan::Expr* e, F use) {
  if (!e || !e->code()) return;
  for (std::uint32_t i = 0; i < e->code()->size(); ++i) {
    const std::int64_t op = e->code()->Get(i);
    if (op > 1) continue;
    ++i;
    if (op == 1) use(static_cast<int>(e->code()->Get(i)));
  }
}

// "2*N + 1"; longer ones are cut after kMaxShownBytes.
std::string expression_text(const oclc::plan::Plan& plan, const oclc::plan::Expr* e);
// "[N, 3, 224, 224]".
std::string shape_text(const oclc::plan::Plan& plan, const flatbuffers::Vector<flatbuffers::Offset<oclc::plan::Expr>>* shape);
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace oclc::runtime
