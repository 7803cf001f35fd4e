#include "runtime/session/assumptions.h"

#include <string>

#include "runtime/failure.h"
#include "runtime/session/expressions.h"

namespace oclc::runtime {

void check_assumptions(const plan::Plan& plan, std::span<const std::int64_t> symbols, const std::vector<bool>& known) {
  for (std::uint32_t i = 0; plan.assumptions() && i < plan.assumptions()->size(); ++i) {
    const plan::Assumption& a = *plan.assumptions()->Get(i);
    bool own = true;
    for (const plan::Expr* e : {a.left(), a.right()})
      each_symbol(e, [&](int s) { own = own && known[static_cast<std::size_t>(s)]; });
    if (!own) continue;
    const std::int64_t left = evaluate(a.left(), symbols, "a dimension"), right = evaluate(a.right(), symbols, "a dimension");
    if (left == right) continue;
    const std::string node = a.node() ? a.node()->str() : std::string();
    const std::string size = expression_text(plan, a.left()), other = expression_text(plan, a.right()),
                      least = std::to_string(right);
    // Beside what it is if it is large enough.
    if (other == "max(" + size + ", " + least + ")" || other == "max(" + least + ", " + size + ")")
      throw Failure(OCLC_E_BINDING, "node '" + node + "': wanted a dimension " + size + " of at least " + least + ", found " +
                                        std::to_string(left));
    throw Failure(OCLC_E_BINDING, "node '" + node + "': wanted the dimensions " + size + " and " + other +
                                      " to be equal, found " + std::to_string(left) + " and " + least);
  }
}

}  // namespace oclc::runtime
