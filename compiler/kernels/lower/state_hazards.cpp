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

  void steps(std::span<const Step> list) {
    for (const Step& step : list) {
      each_whole_read(step, [&](int buffer) { read({buffer, Expr(0), Expr(kUnbounded), nullptr}); });
      if (step.is_kernel()) {
        pointers_in(schedule_.kernel(step));
        reads_in(schedule_.kernel(step));
      }
      if (!step.is_loop()) {
        note_writes(step);
        continue;
      }
      // What a trip writes, the next one may read.
      note_all_writes(step.body());
      steps(step.body());
    }
  }

  std::set<int> unsafe;

 private:
  // The state of which `buffer` is the new value, or -1.
  int replaced_by(int buffer) const { return schedule_.buffers[static_cast<std::size_t>(buffer)].replaces; }

  template <class Visit>
  void each_whole_read(const Step& step, const Visit& visit) const {
    if (const auto* product = step.as<GemmStep>()) {
      const Gemm& g = schedule_.gemms[static_cast<std::size_t>(product->gemm)];
      visit(g.a), visit(g.b);
    } else if (const auto* sizes = step.as<ReadingStep>()) {
      visit(schedule_.readings[static_cast<std::size_t>(sizes->reading)].buffer);
    } else if (const auto* call = step.as<HostStep>()) {
      for (const HostOperand& o : schedule_.hosts[static_cast<std::size_t>(call->host)].inputs) visit(o.buffer);
    }
  }

  void write_whole(int buffer) {
    if (const int state = replaced_by(buffer); state >= 0) written_.push_back({state, Expr(0), Expr(kUnbounded), nullptr});
  }

  void note_writes(const Step& step) {
    if (step.is_kernel()) {
      const auto writes = writes_of(schedule_.kernel(step));
      for (const auto& [range, store] : writes) written_.push_back(range);
    } else if (const auto* product = step.as<GemmStep>()) {
      write_whole(schedule_.gemms[static_cast<std::size_t>(product->gemm)].c);
    } else if (const auto* call = step.as<HostStep>()) {
      for (const HostOperand& o : schedule_.hosts[static_cast<std::size_t>(call->host)].outputs) write_whole(o.buffer);
    }
  }

  void note_all_writes(std::span<const Step> list) {
    for (const Step& step : list) step.is_loop() ? note_all_writes(step.body()) : note_writes(step);
  }

  // New values of states that the kernel stores, and by which of its stores.
  std::vector<std::pair<Range, std::size_t>> writes_of(const Kernel& kernel) const {
    std::vector<std::pair<Range, std::size_t>> writes;
    for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
      const Store& store = kernel.stores[i];
      const int state = replaced_by(kernel.operands[static_cast<std::size_t>(store.operand)].buffer);
      if (state >= 0) writes.push_back({{state, store.index, store.index, &store.index}, i});
    }
    return writes;
  }

  // A body's pointers reach all of a buffer, at any time: state that one reads or writes is updated elsewhere.
  void pointers_in(const Kernel& kernel) {
    if (!kernel.code) return;
    for (const auto* list : {&kernel.code->loads, &kernel.code->stores}) {
      for (const Code::Access& access : *list) {
        if (access.pointer < 0) continue;
        const int buffer = kernel.operands[static_cast<std::size_t>(access.pointer)].buffer;
        const int state = replaced_by(buffer) >= 0 ? replaced_by(buffer) : buffer;
        if (schedule_.buffers[static_cast<std::size_t>(state)].kind == BufferKind::state) unsafe.insert(state);
      }
    }
  }

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

  void reads_in(const Kernel& kernel) {
    const auto writes = writes_of(kernel);
    const std::vector<std::size_t> first_store = first_stores(kernel);
    for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
      const ScalarNode& n = kernel.nodes[i];
      if (n.kind != ScalarNode::Kind::load) continue;
      const int buffer = kernel.operands[static_cast<std::size_t>(n.operand)].buffer;
      if (schedule_.buffers[static_cast<std::size_t>(buffer)].kind != BufferKind::state) continue;
      const Range range{buffer, n.index, n.index, &n.index};
      read(range);
      for (const auto& [write, store] : writes) {
        const bool in_time = n.index == *write.index && first_store[i] <= store;
        if (buffer == write.buffer && !in_time && !disjoint(range, write)) unsafe.insert(buffer);
      }
    }
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
