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
    throw Failure(OCLC_E_BINDING, "node '" + node + "': wanted the dimensions " + expression_text(plan, a.left()) + " and " +
                                      expression_text(plan, a.right()) + " to be equal, found " + std::to_string(left) +
                                      " and " + std::to_string(right));
  }
}

}  // namespace oclc::runtime
