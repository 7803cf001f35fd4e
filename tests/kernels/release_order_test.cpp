// Orders of groups that release memory early.
#include "compiler/kernels/fusion/release_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace oclc;

namespace {

using Order = std::vector<std::size_t>;

bool is_legal(const GroupMemory& memory, const Order& order) {
  if (order.size() != memory.needs.size()) return false;
  std::vector<bool> done(order.size(), false);
  for (const std::size_t id : order) {
    if (done[id] || !std::all_of(memory.needs[id].begin(), memory.needs[id].end(), [&](std::size_t n) { return done[n]; }))
      return false;
    done[id] = true;
  }
  return true;
}

// A chain of `layers` groups forward, as many backward, and a weight's gradient for each, which is a part of storage 0.
GroupMemory chain(std::size_t layers) {
  GroupMemory m;
  m.bytes.push_back(1);
  m.is_shared.push_back(true);
  m.is_part.push_back(false);
  const auto storage = [&] {
    m.bytes.push_back(10);
    m.is_shared.push_back(false);
    m.is_part.push_back(false);
    return m.bytes.size() - 1;
  };
  Order activation{storage()};
  m.needs.push_back({});
  m.uses.push_back({activation[0]});
  for (std::size_t i = 1; i < layers; ++i) {
    activation.push_back(storage());
    m.needs.push_back({i - 1});
    m.uses.push_back({activation[i - 1], activation[i]});
  }
  std::size_t before = layers - 1, gradient = activation.back();
  std::vector<std::pair<std::size_t, std::size_t>> made;  // group and storage, last layer first
  for (std::size_t i = layers; i-- > 0;) {
    const std::size_t next = storage();
    m.needs.push_back({before});
    m.uses.push_back({gradient, next});
    before = m.needs.size() - 1;
    gradient = next;
    made.emplace_back(before, next);
  }
  for (std::size_t i = 0; i < layers; ++i) {
    m.needs.push_back({made[layers - 1 - i].first, i});
    m.uses.push_back({made[layers - 1 - i].second, activation[i], 0});
  }
  return m;
}

Order ascending(std::size_t n) {
  Order order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace

TEST_CASE("storage lives from its first use to its last") {
  GroupMemory m;
  m.needs = {{}, {0}, {1}};
  m.uses = {{0}, {0, 1}, {1, 2}};
  m.bytes = {100, 10, 1};
  m.is_shared = m.is_part = {false, false, false};
  CHECK(peak_bytes(m, {0, 1, 2}) == 110);
}

TEST_CASE("weights' gradients do not wait for the end of the backward pass") {
  const GroupMemory m = chain(20);
  const Order base = ascending(m.needs.size()), order = release_early(m, base);
  CHECK(is_legal(m, order));
  CHECK(peak_bytes(m, base) >= 400);
  CHECK(peak_bytes(m, order) <= 240);
}

TEST_CASE("a large gradient of small operands, and what only it needs, waits until the peak is over") {
  GroupMemory m;
  m.bytes = {1, 20, 50, 100, 2, 3};  // small, a copy of it, the gradient, the peak, what follows, the update
  m.is_shared = m.is_part = std::vector<bool>(6, false);
  m.needs = {{}, {0}, {1}, {0}, {3}, {2, 4}};
  m.uses = {{0}, {0, 1}, {1, 2}, {0, 3}, {3, 4}, {2, 4, 5}};
  const Order base{0, 1, 2, 3, 4, 5}, order = release_early(m, base);
  CHECK(is_legal(m, order));
  CHECK(peak_bytes(m, base) == 152);
  CHECK(peak_bytes(m, order) == 103);
}

TEST_CASE("an order that cannot be better stays") {
  GroupMemory m;
  m.needs = {{}, {0}, {1}};
  m.uses = {{0}, {0, 1}, {1, 2}};
  m.bytes = {1, 1, 1};
  m.is_shared = m.is_part = {false, false, false};
  CHECK(release_early(m, {0, 1, 2}) == Order{0, 1, 2});
}

TEST_CASE("random graphs keep their needs and never need more memory") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    GroupMemory m;
    const std::size_t n = 1 + random() % 30;
    for (std::size_t id = 0; id < n; ++id) {
      m.bytes.push_back(static_cast<double>(random() % 100));
      m.is_shared.push_back(random() % 8 == 0);
      m.is_part.push_back(random() % 8 == 0);
      m.needs.emplace_back();
      m.uses.push_back({id});
      for (std::size_t k = random() % 4; k > 0 && id > 0; --k) {
        const std::size_t from = random() % id;
        if (std::count(m.needs[id].begin(), m.needs[id].end(), from)) continue;
        m.needs[id].push_back(from);
        m.uses[id].push_back(from);
      }
    }
    const Order base = ascending(n), order = release_early(m, base);
    CHECK(is_legal(m, order));
    CHECK(peak_bytes(m, order) <= peak_bytes(m, base));
  }
}
