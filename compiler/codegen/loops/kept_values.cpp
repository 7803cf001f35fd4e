#include "compiler/codegen/loops/kept_values.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "compiler/kernels/axis_dependencies.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Floats of a row that are kept: some of the first-level cache beside what is read and written.
constexpr std::int64_t kMostFloats = 4096;

class Keeping {
 public:
  explicit Keeping(const Kernel& kernel) : kernel_(kernel) {
    const auto dependencies = find_dependencies(kernel);
    const std::string& row = kernel.reduction.back().name;
    for (const auto& d : dependencies) varies_.push_back(d.count(row) != 0);
  }

  std::vector<KeptValue> run() {
    int loop = 0;
    for (const Stage& stage : kernel_.stages) visit_loop(loop++, stage.body);
    for (const Store& store : kernel_.stores) {
      if (!store.row_axes.empty()) visit_loop(loop, store.value);
      ++loop;
    }
    return std::move(kept_);
  }

 private:
  const ScalarNode& node(NodeId id) const { return kernel_.nodes[static_cast<std::size_t>(id)]; }
  bool varies(NodeId id) const { return varies_[static_cast<std::size_t>(id)]; }

  // Operations along the row that the value takes.
  double cost(NodeId id) {
    if (!varies(id)) return 0;
    const auto known = costs_.find(id);
    if (known != costs_.end()) return known->second;
    double sum = node(id).kind == ScalarNode::Kind::apply ? node(id).op->flops : 0;
    for (const NodeId a : node(id).args) sum += cost(a);
    return costs_[id] = sum;
  }

  void visit_loop(int loop, NodeId root) {
    std::set<NodeId> mine;
    visit(loop, root, mine);
    for (const NodeId id : mine) computed_.emplace(id, loop);
  }

  // What is not kept is computed in this loop.
  void visit(int loop, NodeId id, std::set<NodeId>& mine) {
    if (!varies(id) || !mine.insert(id).second) return;
    const auto before = computed_.find(id);
    if (before != computed_.end() && cost(id) >= cost::kCachedValueFlops && node(id).dtype == DType::f32) {
      mine.erase(id);
      return keep(id, before->second, loop);
    }
    for (const NodeId a : node(id).args) visit(loop, a, mine);
  }

  void keep(NodeId id, int first, int loop) {
    for (KeptValue& k : kept_) {
      if (k.node != id) continue;
      if (k.others.back() != loop) k.others.push_back(loop);
      return;
    }
    kept_.push_back({id, first, {loop}, fmt::format("kept{}", kept_.size())});
  }

  const Kernel& kernel_;
  std::vector<bool> varies_;
  std::map<NodeId, double> costs_;
  std::map<NodeId, int> computed_;  // the first loop that does
  std::vector<KeptValue> kept_;
};

}  // namespace

std::int64_t kept_floats(const Kernel& kernel) {
  if (kernel.reduction.size() != 1) return 0;
  const std::int64_t most = kernel.reduction.back().extent.upper();
  return most <= kMostFloats ? most : 0;
}

std::vector<KeptValue> values_to_keep(const Kernel& kernel) {
  const std::int64_t floats = kept_floats(kernel);
  if (floats == 0) return {};
  std::vector<KeptValue> kept = Keeping(kernel).run();
  if (static_cast<std::int64_t>(kept.size()) * floats > kMostFloats) kept.clear();
  return kept;
}

}  // namespace oclc
