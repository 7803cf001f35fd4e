#include "compiler/schedule/fuse_over_batch.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "compiler/kernels/memory_access.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/schedule/scratch_slots.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// How a kernel uses a buffer: image i touches elements [i * slice, (i + 1) * slice); nothing: others too.
struct Access {
  std::optional<std::int64_t> slice;
  bool written = false;
};

class Images {
 public:
  Images(Schedule& schedule, const Target& target)
      : schedule_(schedule), cache_(target.l2_bytes * target.compute_units), target_(target), uses_(schedule.uses()) {}

  void steps(std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t length = stretch(std::span(list).subspan(i));
      if (length < 2) continue;
      LoopStep loop;
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(i), end = begin + static_cast<std::ptrdiff_t>(length);
      loop.body.assign(begin, end);
      if (!make_loop(loop)) continue;
      *begin = Step{std::move(loop)};
      list.erase(begin + 1, end);
    }
  }

 private:
  Kernel& kernel(const Step& step) { return schedule_.kernel(step); }
  const Buffer& buffer(int id) const { return schedule_.buffers[static_cast<std::size_t>(id)]; }

  static std::int64_t images_of(const Kernel& kernel) {
    return kernel.axes.size() > 1 && kernel.axes[0].extent.is_constant() ? kernel.axes[0].extent.value() : 1;
  }

  static std::optional<std::int64_t> slice_of(const Expr& index, const std::vector<Expr>& guards, const Axis& image) {
    const auto step = index.coefficient(image.name);
    if (!step || !step->is_constant() || step->value() <= 0) return std::nullopt;
    const Expr rest = index.substitute({{image.name, Expr(0)}});
    return lies_within(rest, guards, step->value()) ? std::optional(step->value()) : std::nullopt;
  }

  // Of every buffer but constants.
  std::map<int, Access> accesses(const Kernel& kernel) const {
    std::map<int, Access> out;
    const auto note = [&](int operand, const Expr& index, const std::vector<Expr>& guards, bool written) {
      const int id = kernel.operands[static_cast<std::size_t>(operand)].buffer;
      if (buffer(id).kind == BufferKind::constant) return;
      const auto slice = slice_of(index, guards, kernel.axes[0]);
      const auto [known, is_new] = out.emplace(id, Access{slice, written});
      if (!is_new && known->second.slice != slice) known->second.slice.reset();
      known->second.written = known->second.written || written;
    };
    for (const ScalarNode& n : kernel.nodes) {
      if (n.kind == ScalarNode::Kind::load) note(n.operand, n.index, n.guard, false);
    }
    for (const Store& s : kernel.stores) note(s.operand, s.index, s.guard, true);
    return out;
  }

  // Operands of which every image reads the same elements: weights, be they constants or values of run time.
  std::set<int> shared_operands(const Kernel& kernel) const {
    std::set<int> out;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (!kernel.operands[i].written) out.insert(static_cast<int>(i));
    }
    for (const ScalarNode& n : kernel.nodes) {
      if (n.kind == ScalarNode::Kind::load && n.index.uses(kernel.axes[0].name)) out.erase(n.operand);
    }
    return out;
  }

  // Traffic that images one after another save, less what they cost.
  std::int64_t gain(const Kernel& kernel) const {
    std::int64_t moved = 0, weights = 0;
    const std::set<int> shared = shared_operands(kernel);
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      const Buffer& b = buffer(kernel.operands[i].buffer);
      if (!b.elements.is_constant()) continue;
      (b.kind == BufferKind::constant || shared.count(static_cast<int>(i)) != 0 ? weights : moved) +=
          b.elements.value() * static_cast<std::int64_t>(size_bytes(b.dtype));
    }
    const std::int64_t images = images_of(kernel);
    return (moved > cache_ ? moved : 0) - (images - 1) * weights / cost::kLastCacheSpeed - images * cost::kImageStepBytes;
  }

  // Steps from the first one on that are worth a loop, 0 if none are.
  std::size_t stretch(std::span<const Step> list) {
    std::map<int, Access> known;
    std::int64_t sum = 0, best_sum = 0, images = 0;
    std::size_t best = 0;
    for (std::size_t i = 0; i < list.size() && list[i].is_kernel(); ++i) {
      const Kernel& k = kernel(list[i]);
      if (i == 0) images = images_of(k);
      if (images < 2 || images_of(k) != images || !join(known, accesses(k))) break;
      sum += gain(k);
      if (sum <= 0) break;
      if (sum <= best_sum) continue;
      best_sum = sum;
      best = i + 1;
    }
    return best;
  }

  // Adds a kernel's accesses; false if it or an earlier one would meet another image's.
  static bool join(std::map<int, Access>& known, const std::map<int, Access>& next) {
    for (const auto& [id, access] : next) {
      const auto [at, is_new] = known.emplace(id, access);
      Access& before = at->second;
      const bool written = before.written || access.written;
      if (written && (!before.slice || before.slice != access.slice)) return false;
      if (before.slice != access.slice) before.slice.reset();
      before.written = written;
    }
    return true;
  }

  // Values that only these kernels use, with their places in memory of one image.
  std::vector<ScratchValue> values(const std::vector<Step>& body) {
    std::map<int, ScratchValue> all;
    std::map<int, int> uses;
    for (std::size_t i = 0; i < body.size(); ++i) {
      for (const Operand& o : kernel(body[i]).operands) ++uses[o.buffer];
      for (const auto& [id, access] : accesses(kernel(body[i]))) {
        const Buffer& b = buffer(id);
        if (b.kind != BufferKind::arena || b.dtype != DType::f32 || !access.slice) continue;
        const auto [at, is_new] = all.emplace(id, ScratchValue{id, *access.slice, i, i, 0});
        at->second.last = i;
        if (is_new && !access.written) at->second.size = 0;  // written before the loop
      }
    }
    std::vector<ScratchValue> out;
    for (const auto& [id, value] : all) {
      if (uses[id] == uses_.at(id) && value.size > 0) out.push_back(value);
    }
    return out;
  }

  // False, and nothing is changed, if one launch cannot do the loop.
  bool make_loop(LoopStep& loop) {
    const std::int64_t images = images_of(kernel(loop.body[0]));
    loop.trip = Expr(images);
    loop.counter = "image_" + std::to_string(count_);
    std::vector<ScratchValue> inside = values(loop.body);
    const std::int64_t floats = place_scratch(inside);
    std::vector<Kernel> before;
    for (const Step& step : loop.body) before.push_back(kernel(step));
    const auto buffers = schedule_.buffers.size();
    const int scratch = inside.empty() ? -1 : static_cast<int>(buffers);
    const PlacesOfTrips places(loop, places_of_trips(images, target_), floats);
    if (scratch >= 0) schedule_.buffers.push_back({loop.counter, BufferKind::arena, DType::f32, Expr(places.floats), {}, -1});
    for (const Step& step : loop.body) take_image(kernel(step), loop.counter, images, inside, scratch, places.start);
    const Step made{loop};
    if (stretch_length(schedule_, std::span(&made, 1), target_) == 1) {
      ++count_;
      return true;
    }
    for (std::size_t i = 0; i < before.size(); ++i) kernel(loop.body[i]) = std::move(before[i]);
    schedule_.buffers.resize(buffers);
    return false;
  }

  void take_image(Kernel& k, const std::string& counter, std::int64_t images, const std::vector<ScratchValue>& inside,
                  int scratch, const Expr& start) {
    const std::string axis = k.axes[0].name;
    const Expr image = Expr::symbol(counter, 0, images - 1);
    const auto rewrite = [&](Expr& e, int operand) {
      const int id = operand < 0 ? -1 : k.operands[static_cast<std::size_t>(operand)].buffer;
      const auto value = std::find_if(inside.begin(), inside.end(), [&](const ScratchValue& v) { return v.buffer == id; });
      e = value == inside.end() ? e.substitute({{axis, image}}) : e.substitute({{axis, Expr(0)}}) + start + Expr(value->offset);
    };
    for (ScalarNode& n : k.nodes) {
      rewrite(n.index, n.kind == ScalarNode::Kind::load ? n.operand : -1);
      for (Expr& e : n.guard) rewrite(e, -1);
    }
    for (Store& s : k.stores) {
      rewrite(s.index, s.operand);
      for (Expr& e : s.guard) rewrite(e, -1);
    }
    for (Operand& o : k.operands) {
      if (std::any_of(inside.begin(), inside.end(), [&](const ScratchValue& v) { return v.buffer == o.buffer; }))
        o.buffer = scratch;
    }
    k.axes[0].extent = 1;
    k.axes[0].var = 0;
    k.flops = floor_div(k.flops, Expr(images));
    k.bytes = floor_div(k.bytes, Expr(images));
  }

  Schedule& schedule_;
  const std::int64_t cache_;
  const Target& target_;
  const std::map<int, int> uses_;
  int count_ = 0;
};

}  // namespace

void fuse_over_batch(Schedule& schedule, const ScheduleContext& context) {
  Images all(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) all.steps(entry.steps);
}

}  // namespace oclc
