#include "compiler/kernels/memory_access.h"

#include <algorithm>

#include "compiler/kernels/merged_kernel.h"

namespace oclc {

int storage_of(const std::vector<Buffer>& buffers, int buffer) {
  const int replaces = buffers[static_cast<std::size_t>(buffer)].replaces;
  return replaces >= 0 ? replaces : buffer;
}

std::vector<MemoryAccess> accesses_of(const Kernel& kernel, const std::vector<Buffer>& buffers) {
  std::vector<MemoryAccess> all;
  const bool by_index = !kernel.contraction && !kernel.code && !has_dynamic_indices(kernel);
  const auto add = [&](const Operand& operand, const Expr& index) {
    MemoryAccess access{storage_of(buffers, operand.buffer), operand.written};
    if (by_index && index.lower() >= 0 && index.upper() >= index.lower()) {
      access.first = index.lower();
      access.last = index.upper();
    }
    all.push_back(access);
  };
  if (by_index) {
    for (const ScalarNode& node : kernel.nodes) {
      if (node.kind == ScalarNode::Kind::load) add(kernel.operands[static_cast<std::size_t>(node.operand)], node.index);
    }
    for (const Store& store : kernel.stores) add(kernel.operands[static_cast<std::size_t>(store.operand)], store.index);
  } else {
    for (const Operand& operand : kernel.operands) add(operand, Expr(0));
  }
  return all;
}

bool do_conflict(std::span<const MemoryAccess> a, std::span<const MemoryAccess> b) {
  return std::any_of(a.begin(), a.end(), [&](const MemoryAccess& x) {
    return std::any_of(b.begin(), b.end(), [&](const MemoryAccess& y) {
      return x.storage == y.storage && (x.written || y.written) && x.first <= y.last && y.first <= x.last;
    });
  });
}

std::int64_t lower_bound(Expr e, const std::vector<Expr>& guards) {
  for (const Expr& guard : guards) {
    for (const std::string& s : guard.symbols()) {
      const auto mine = e.coefficient(s), its = guard.coefficient(s);
      if (!mine || !its || !mine->is_constant() || !its->is_constant() || its->value() == 0) continue;
      if (mine->value() % its->value() != 0 || mine->value() / its->value() <= 0) continue;
      const Expr less = e - Expr(mine->value() / its->value()) * guard;
      if (less.lower() > e.lower()) e = less;
    }
  }
  return e.lower();
}

bool lies_within(const Expr& index, const std::vector<Expr>& guards, std::int64_t size) {
  return lower_bound(index, guards) >= 0 && lower_bound(Expr(size - 1) - index, guards) >= 0;
}

}  // namespace oclc
