#include "compiler/kernels/lower/state_hazards.h"

#include <algorithm>

namespace oclc {
namespace {

struct Range {
  int buffer = -1;
  Expr first, last;
  const Expr* index = nullptr;  // null: the whole buffer
};

// Disjoint for all values of the symbols.
bool disjoint(const Range& a, const Range& b) { return a.last.upper() < b.first.lower() || b.last.upper() < a.first.lower(); }

class Walk {
 public:
  explicit Walk(const Schedule& schedule) : schedule_(schedule) {}

  void steps(const std::vector<Step>& list) {
    for (const Step& step : list) {
      if (step.kernel >= 0) {
        kernel(schedule_.kernels[static_cast<std::size_t>(step.kernel)]);
      } else if (step.gemm >= 0) {
        const Gemm& g = schedule_.gemms[static_cast<std::size_t>(step.gemm)];
        read({g.a, Expr(0), Expr(kUnbounded), nullptr});
        read({g.b, Expr(0), Expr(kUnbounded), nullptr});
        if (const int state = replaced_by(g.c); state >= 0) written_.push_back({state, Expr(0), Expr(kUnbounded), nullptr});
      } else if (step.reading >= 0) {
        read({schedule_.readings[static_cast<std::size_t>(step.reading)].buffer, Expr(0), Expr(kUnbounded), nullptr});
      } else if (step.host >= 0) {
        const HostCall& call = schedule_.hosts[static_cast<std::size_t>(step.host)];
        for (const HostOperand& o : call.inputs) read({o.buffer, Expr(0), Expr(kUnbounded), nullptr});
        for (const HostOperand& o : call.outputs)
          if (const int state = replaced_by(o.buffer); state >= 0)
            written_.push_back({state, Expr(0), Expr(kUnbounded), nullptr});
      } else {
        // What a trip writes, the next one may read.
        steps(step.body);
        steps(step.body);
      }
    }
  }

  std::set<int> unsafe;

 private:
  // The state of which `buffer` is the new value, or -1.
  int replaced_by(int buffer) const { return schedule_.buffers[static_cast<std::size_t>(buffer)].replaces; }

  void read(const Range& range) {
    for (const Range& w : written_) {
      if (w.buffer == range.buffer && !disjoint(w, range)) unsafe.insert(range.buffer);
    }
  }

  // For each node the first store that it is computed for; nodes of reductions are computed before all stores.
  static std::vector<std::size_t> first_stores(const Kernel& kernel) {
    std::vector<std::size_t> first(kernel.nodes.size(), 0);
    std::vector<bool> is_known(kernel.nodes.size(), false);
    const auto mark = [&](NodeId root, std::size_t store) {
      std::vector<NodeId> stack{root};
      while (!stack.empty()) {
        const auto at = static_cast<std::size_t>(stack.back());
        stack.pop_back();
        if (is_known[at]) continue;
        is_known[at] = true;
        first[at] = store;
        stack.insert(stack.end(), kernel.nodes[at].args.begin(), kernel.nodes[at].args.end());
        for (const std::string& symbol : kernel.nodes[at].index.symbols()) {
          if (const auto id = dynamic_index(symbol)) stack.push_back(*id);
        }
      }
    };
    for (std::size_t i = 0; i < kernel.stores.size(); ++i) mark(kernel.stores[i].value, i);
    return first;
  }

  void kernel(const Kernel& kernel) {
    std::vector<Range> reads, writes;
    std::vector<std::size_t> wanted_by, written_by;  // stores, by read and by write
    const std::vector<std::size_t> first_store = first_stores(kernel);
    for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
      const ScalarNode& n = kernel.nodes[i];
      if (n.kind != ScalarNode::Kind::load) continue;
      const int buffer = kernel.operands[static_cast<std::size_t>(n.operand)].buffer;
      if (schedule_.buffers[static_cast<std::size_t>(buffer)].kind != BufferKind::state) continue;
      reads.push_back({buffer, n.index, n.index, &n.index});
      wanted_by.push_back(first_store[i]);
    }
    for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
      const int state = replaced_by(kernel.operands[static_cast<std::size_t>(kernel.stores[i].operand)].buffer);
      if (state < 0) continue;
      writes.push_back({state, kernel.stores[i].index, kernel.stores[i].index, &kernel.stores[i].index});
      written_by.push_back(i);
    }
    for (std::size_t r = 0; r < reads.size(); ++r) {
      read(reads[r]);
      for (std::size_t w = 0; w < writes.size(); ++w) {
        const bool in_time = *reads[r].index == *writes[w].index && wanted_by[r] <= written_by[w];
        if (reads[r].buffer == writes[w].buffer && !in_time && !disjoint(reads[r], writes[w])) unsafe.insert(reads[r].buffer);
      }
    }
    written_.insert(written_.end(), writes.begin(), writes.end());
  }

  const Schedule& schedule_;
  std::vector<Range> written_;
};

}  // namespace

std::set<int> overwritten_too_early(const Schedule& schedule, const std::vector<Step>& steps) {
  Walk walk(schedule);
  walk.steps(steps);
  return std::move(walk.unsafe);
}

}  // namespace oclc
