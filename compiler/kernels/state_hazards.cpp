#include "compiler/kernels/state_hazards.h"

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

  void kernel(const Kernel& kernel) {
    std::vector<Range> reads, writes;
    for (const ScalarNode& n : kernel.nodes) {
      if (n.kind != ScalarNode::Kind::load) continue;
      const int buffer = kernel.operands[static_cast<std::size_t>(n.operand)].buffer;
      if (schedule_.buffers[static_cast<std::size_t>(buffer)].kind == BufferKind::state)
        reads.push_back({buffer, n.index, n.index, &n.index});
    }
    for (const Store& store : kernel.stores) {
      const int state = replaced_by(kernel.operands[static_cast<std::size_t>(store.operand)].buffer);
      if (state >= 0) writes.push_back({state, store.index, store.index, &store.index});
    }
    for (const Range& r : reads) {
      read(r);
      for (const Range& w : writes) {
        if (r.buffer == w.buffer && !(*r.index == *w.index) && !disjoint(r, w)) unsafe.insert(r.buffer);
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
