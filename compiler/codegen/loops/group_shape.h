// How the work-items of a group share the results of a kernel on a GPU and the terms of its sums.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// Base of the class that writes such a kernel; what it reads is chosen in the order of the functions.
class GroupShape {
 public:
  // `groups` not 0: part of a launch of `groups` work-groups. `items` not 0: of the one group that computes all results.
  GroupShape(const Kernel& kernel, const Target& target, std::int64_t groups, int items);

  // Whether sums are long enough, and all of one type that there is code for.
  bool applies() const;

 protected:
  // Floats of a vector.
  static constexpr int kLanes = 4;

  // Everything but each_.
  void choose();
  // The results of the last stage that a work-item takes part in, so that a tile is left for each group and no more; 1 where
  // what comes before depends on them.
  void choose_each(const Emitter& e);

  const Axis& reduction(int i) const { return kernel_.reduction[static_cast<std::size_t>(i)]; }
  Expr terms(const std::vector<int>& axes) const;
  // Parts that each work-item adds up, of `sums` that share their loops.
  int parts_of_result(int sums) const;
  // Whether a function adds up what sharers have, in the same order.
  bool sums_sharers(const Stage& s, int parts) const;
  // Whether a sum is so long that it carries what rounding takes.
  bool carries(const Stage& s) const;

  Kernel kernel_;
  const Target& target_;
  const std::int64_t megakernel_groups_;  // 0: a launch of its own
  const int items_;
  Expr all_ = 1, vectors_ = 1;  // results; vectors of them
  int results_ = 1, sharers_ = 1;
  int result_lanes_ = 1, term_lanes_ = 1;
  int unroll_ = 1;
  std::optional<NodeId> ahead_;
  bool several_ = false;  // a work-item takes part in `each_` results, one after another in a tile
  int each_ = 1;
  bool along_ = false;  // loads run along the results

 private:
  std::int64_t likely_terms(const Stage& s) const;
  bool leaves_idle() const;
  bool loads_along(const std::string& axis) const;
  bool fills_vectors(const Axis& axis) const;
  void choose_lanes();
  void choose_shape();
  void choose_shape_of_group();
  std::optional<NodeId> load_of_weights() const;
  void choose_ahead();
};

}  // namespace oclc
