#include "compiler/schedule/fuse_row_tiles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compiler/ir/division.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/schedule/fuse_over_batch.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/schedule/scratch_slots.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Different rows of a value that kernels read at once.
constexpr std::size_t kMostReads = 64;
// Loops whose gain is less than this part of their arithmetic's time lose it at the ends of kernels, where groups wait for each
// other.
constexpr std::int64_t kLeastGain = 4;
// Bytes of the largest value that a work-group hands on to itself in a trip. With second-level caches of 2 MiB trips of 1 MB
// took a tenth longer than twice as many of half of it.
constexpr std::int64_t kMostOwn = 768 << 10;
// Row tiles of an image, at most.
constexpr std::int64_t kMostRowTiles = 32;
// Kernels of a loop, at most.
constexpr std::size_t kMostKernels = 8;

// The rows that a kernel computes in a trip of the loop, of one image.
struct Rows {
  Expr start;
  std::int64_t count = 0, all = 0;
};

// A value that the loop's kernels hand on.
struct Handed {
  std::size_t writer = 0, last = 0;  // places in the loop
  std::int64_t slice = 0;            // floats of a row
  std::int64_t rows = 0;             // of an image
  bool local = false;                // nothing outside the loop uses it
};

struct Plan {
  std::int64_t images = 1, trips = 0, gain = 0;  // trips of an image
  bool own = false;                              // a work-group does all of a trip
  std::vector<Rows> rows;                        // by kernel
  std::map<int, Handed> handed;                  // by buffer
};

std::int64_t bytes_of(const Buffer& b) {
  return b.elements.is_constant() ? b.elements.value() * static_cast<std::int64_t>(size_bytes(b.dtype)) : 0;
}

class RowTiles {
 public:
  RowTiles(Schedule& schedule, const Target& target, bool batched)
      : schedule_(schedule),
        target_(target),
        batched_(batched),
        cache_(target.l2_bytes * target.compute_units),
        uses_(schedule.uses()) {}

  void steps(std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto [length, plan] = best(std::span<const Step>(list).subspan(i));
      if (length == 0) continue;
      LoopStep loop;
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(i), end = begin + static_cast<std::ptrdiff_t>(length);
      loop.body.assign(begin, end);
      if (!make_loop(loop, plan)) continue;
      *begin = Step{std::move(loop)};
      list.erase(begin + 1, end);
    }
  }

 private:
  const Kernel& kernel(const Step& step) const { return schedule_.kernel(step); }
  Kernel& kernel(const Step& step) { return schedule_.kernel(step); }
  const Buffer& buffer(int id) const { return schedule_.buffers[static_cast<std::size_t>(id)]; }

  static int buffer_of(const Kernel& k, int operand) { return k.operands[static_cast<std::size_t>(operand)].buffer; }

  // The images that a kernel goes through first, if it goes through rows next: 1 for a single one.
  static std::int64_t images_of(const Kernel& k) {
    return k.axes.size() > 1 && k.axes[0].extent.is_constant() ? k.axes[0].extent.value() : 1;
  }

  // The outermost axis, or that behind the images, if there are others.
  static const Axis* row_axis(const Kernel& k, std::int64_t images) {
    if (images > 1 && images_of(k) != images) return nullptr;
    const auto at =
        std::find_if(k.axes.begin() + (images > 1 ? 1 : 0), k.axes.end(), [](const Axis& a) { return a.extent != Expr(1); });
    if (at == k.axes.end() || at + 1 == k.axes.end() || !at->extent.is_constant()) return nullptr;
    return &*at;
  }

  // Products over windows of the image have templates that go through whole images.
  static bool fits(const Kernel& k, std::int64_t images) {
    if (k.anchor != Anchor::pointwise && k.anchor != Anchor::reduce && k.anchor != Anchor::row &&
        k.anchor != Anchor::contraction)
      return false;
    if (!row_axis(k, images) || !k.flops.is_constant()) return false;
    if (std::any_of(k.stores.begin(), k.stores.end(), [](const Store& s) { return !s.guard.empty(); })) return false;
    if (!k.contraction) return true;
    const auto summed = std::count_if(k.contraction->k.begin(), k.contraction->k.end(),
                                      [&](int i) { return k.reduction[static_cast<std::size_t>(i)].extent != Expr(1); });
    return summed == 1;
  }

  // An index within the first image, if those of the next are `size` elements further on.
  static std::optional<Expr> within_image(const Expr& index, const Kernel& k, std::int64_t images, std::int64_t size) {
    if (images == 1) return index;
    const auto step = index.coefficient(k.axes[0].name);
    if (!step || *step != Expr(size)) return std::nullopt;
    return index.substitute({{k.axes[0].name, Expr(0)}});
  }

  // Floats of a row where a store puts row after row, image after image.
  static std::optional<std::int64_t> slice_of(const Store& s, const Kernel& k, std::int64_t images) {
    const Axis& row = *row_axis(k, images);
    const auto step = s.index.coefficient(row.name);
    if (!step || !step->is_constant() || step->value() <= 0) return std::nullopt;
    const auto index = within_image(s.index, k, images, step->value() * row.extent.value());
    if (!index) return std::nullopt;
    const Expr rest = index->substitute({{row.name, Expr(0)}});
    return lies_within(rest, {}, step->value()) ? std::optional(step->value()) : std::nullopt;
  }

  // Rows of a value that a load reads, for the kernel's row r: stride * r + first .. stride * r + last.
  struct Reads {
    std::int64_t stride = 0, first = 0, last = 0;
  };
  static std::optional<Reads> reads_of(const ScalarNode& load, const Kernel& k, std::int64_t images, const Handed& value) {
    const Axis& row = *row_axis(k, images);
    const std::int64_t slice = value.slice;
    const auto index = within_image(load.index, k, images, slice * value.rows);
    const auto step = load.index.coefficient(row.name);
    if (!index || !step || !step->is_constant() || step->value() < 0 || step->value() % slice != 0) return std::nullopt;
    const Expr rest = index->substitute({{row.name, Expr(0)}});
    const std::int64_t low = lower_bound(rest, load.guard), high = lower_bound(-rest, load.guard);
    if (low == -kUnbounded || high == -kUnbounded) return std::nullopt;
    return Reads{step->value() / slice, divide_down(low, slice), divide_down(-high, slice)};
  }

  static std::int64_t at_trip(const Expr& e, std::int64_t trip) { return e.evaluate({{std::string(kTrip), trip}}).value(); }

  // What the kernels write, if each value has one writer that goes row by row and is read after it only.
  std::optional<std::map<int, Handed>> handed(std::span<const Step> body, std::int64_t images) const {
    std::map<int, Handed> out;
    std::map<int, int> uses;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const Kernel& k = kernel(body[i]);
      for (const Operand& o : k.operands) ++uses[o.buffer];
      for (const ScalarNode& n : k.nodes) {
        if (n.kind != ScalarNode::Kind::load) continue;
        const auto known = out.find(buffer_of(k, n.operand));
        if (known != out.end()) known->second.last = i;
      }
      for (const Store& s : k.stores) {
        const int id = buffer_of(k, s.operand);
        const auto slice = slice_of(s, k, images);
        if (!slice || buffer(id).dtype != DType::f32) return std::nullopt;
        const auto [known, is_new] = out.emplace(id, Handed{i, i, *slice, row_axis(k, images)->extent.value(), false});
        if (!is_new && (known->second.writer != i || known->second.slice != *slice)) return std::nullopt;
      }
    }
    for (auto& [id, value] : out) {
      for (std::size_t i = 0; i <= value.writer; ++i) {
        if (loads_from(kernel(body[i]), id)) return std::nullopt;
      }
      value.local = buffer(id).kind == BufferKind::arena && uses[id] == uses_.at(id) && value.last > value.writer;
    }
    return out;
  }

  // The rows of every kernel if the last one's are cut into `trips` row tiles.
  std::optional<Plan> plan(std::span<const Step> body, const std::map<int, Handed>& values, std::int64_t images,
                           std::int64_t trips, bool own) const {
    Plan out;
    out.own = own;
    out.images = images;
    out.trips = trips;
    out.handed = values;
    out.rows.resize(body.size());
    const Expr trip = Expr::symbol(std::string(kTrip), 0, trips - 1);
    for (std::size_t i = body.size(); i-- > 0;) {
      const Kernel& k = kernel(body[i]);
      Rows& mine = out.rows[i];
      mine.all = row_axis(k, images)->extent.value();
      bool whole = i + 1 == body.size();
      for (const Store& s : k.stores) whole = whole || !values.at(buffer_of(k, s.operand)).local;
      if (whole) {
        if (mine.all % trips != 0) return std::nullopt;
        mine.count = mine.all / trips;
        mine.start = trip * Expr(mine.count);
      }
      // Rows of what it computes that later kernels read in trip t: first(t) .. last(t).
      std::vector<std::pair<Expr, Expr>> needed;
      for (const Store& s : k.stores) {
        const int id = buffer_of(k, s.operand);
        for (std::size_t j = i + 1; j < body.size(); ++j) {
          const Kernel& reader = kernel(body[j]);
          for (const ScalarNode& n : reader.nodes) {
            if (n.kind != ScalarNode::Kind::load || buffer_of(reader, n.operand) != id) continue;
            const auto reads = reads_of(n, reader, images, values.at(id));
            if (!reads) return std::nullopt;
            const Expr first = Expr(reads->stride) * out.rows[j].start;
            std::pair<Expr, Expr> rows(first + reads->first, first + (reads->stride * (out.rows[j].count - 1) + reads->last));
            if (std::find(needed.begin(), needed.end(), rows) == needed.end()) needed.push_back(std::move(rows));
            if (needed.size() > kMostReads) return std::nullopt;
          }
        }
      }
      if (whole) {
        for (const auto& [first, last] : needed) {
          for (std::int64_t t = 0; t < trips; ++t) {
            if (std::min(at_trip(last, t), mine.all - 1) >= at_trip(mine.start, t) + mine.count) return std::nullopt;
            const bool kept = std::none_of(k.stores.begin(), k.stores.end(),
                                           [&](const Store& s) { return values.at(buffer_of(k, s.operand)).local; });
            if ((own || !kept) && std::max<std::int64_t>(at_trip(first, t), 0) < at_trip(mine.start, t)) return std::nullopt;
          }
        }
        continue;
      }
      if (needed.empty()) return std::nullopt;
      Expr from = needed.front().first;
      for (const auto& [first, last] : needed) from = min(from, first);
      for (const auto& [first, last] : needed) {
        for (std::int64_t t = 0; t < trips; ++t) mine.count = std::max(mine.count, at_trip(last, t) - at_trip(from, t) + 1);
      }
      if (mine.count >= mine.all) return std::nullopt;
      mine.start = min(max(from, Expr(0)), Expr(mine.all - mine.count));
    }
    return out;
  }

  // Whether a kernel that goes through a whole image pushes out of the cores' caches what it reads and writes.
  bool displaces(const Step& step, const Plan& plan) const {
    std::int64_t sum = 0;
    for (const Operand& o : kernel(step).operands) {
      if (buffer(o.buffer).kind != BufferKind::constant) sum += bytes_of(buffer(o.buffer)) / plan.images;
    }
    return sum > cache_ / 4 * 3;
  }

  // Traffic saved less what the loop costs, in bytes of traffic.
  std::int64_t gain(std::span<const Step> body, const Plan& plan) const {
    const std::int64_t trips = plan.images * plan.trips;
    std::int64_t sum = -trips * static_cast<std::int64_t>(body.size()) *
                       (plan.own ? cost::kOwnRowTileStepBytes : cost::kRowTileStepBytes),
                 scratch = 0;
    for (const auto& [id, value] : plan.handed) {
      if (!value.local) continue;
      const Rows& rows = plan.rows[value.writer];
      const std::int64_t bytes = bytes_of(buffer(id));
      scratch = std::max(scratch, rows.count * value.slice * 4);
      if (bytes / plan.images > cache_ / 2 || (plan.own && displaces(body[value.writer], plan)) ||
          (plan.own && displaces(body[value.last], plan)))
        sum += 2 * bytes;
    }
    if (scratch > (plan.own ? std::min(kMostOwn, target_.l2_bytes / 4 * 3) : cache_ / 4 * 3)) return 0;
    std::int64_t work = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const Kernel& k = kernel(body[i]);
      const Rows& rows = plan.rows[i];
      const std::int64_t bytes = k.flops.value() / (k.contraction ? cost::kProductFlopsPerByte : cost::kFlopsPerByte);
      work += bytes;
      sum -= bytes * (rows.count * plan.trips - rows.all) / rows.all;
      for (const Operand& o : k.operands) {
        if (buffer(o.buffer).kind == BufferKind::constant)
          sum -= (trips - 1) * bytes_of(buffer(o.buffer)) / cost::kLastCacheSpeed;
      }
    }
    const bool hands_on = std::any_of(plan.handed.begin(), plan.handed.end(),
                                      [](const auto& value) { return value.second.local && value.second.writer == 0; });
    return hands_on && sum * kLeastGain > work ? sum : 0;
  }

  // How many of the steps from the first one on are worth a loop most, and how; 0 if none are.
  std::pair<std::size_t, Plan> best(std::span<const Step> list) const {
    std::pair<std::size_t, Plan> out;
    if (!list.front().is_kernel()) return out;
    const std::int64_t images = batched_ ? images_of(kernel(list.front())) : 1;
    if (batched_ && images == 1) return out;
    for (std::size_t length = 1; length <= std::min(list.size(), kMostKernels); ++length) {
      const Step& last = list[length - 1];
      if (!last.is_kernel() || !fits(kernel(last), images)) break;
      if (length < 2) continue;
      const auto body = list.first(length);
      const auto values = handed(body, images);
      if (!values) break;
      const std::int64_t rows = row_axis(kernel(last), images)->extent.value();
      for (std::int64_t trips = 2; trips <= std::min(rows, kMostRowTiles); ++trips) {
        if (rows % trips != 0) continue;
        auto found = places_of_trips(images * trips, target_) > 0 ? plan(body, *values, images, trips, true) : std::nullopt;
        if (!found) found = plan(body, *values, images, trips, false);
        if (!found) continue;
        found->gain = gain(body, *found);
        if (found->gain > out.second.gain) out = {length, std::move(*found)};
      }
    }
    return out;
  }

  // False, and nothing is changed, if one launch cannot do the loop.
  bool make_loop(LoopStep& loop, const Plan& plan) {
    loop.trip = Expr(plan.images * plan.trips);
    loop.counter = (batched_ ? "image_row_tile_" : "row_tile_") + std::to_string(count_);
    std::vector<ScratchValue> inside;
    for (const auto& [id, value] : plan.handed) {
      if (value.local) inside.push_back({id, plan.rows[value.writer].count * value.slice, value.writer, value.last, 0});
    }
    const std::int64_t floats = place_scratch(inside);
    std::vector<Kernel> before;
    for (const Step& step : loop.body) before.push_back(kernel(step));
    const auto buffers = schedule_.buffers.size();
    const PlacesOfTrips places(loop, plan.own ? places_of_trips(loop.trip.value(), target_) : 0, floats);
    schedule_.buffers.push_back({loop.counter, BufferKind::arena, DType::f32, Expr(places.floats), {}, -1});
    for (std::size_t i = 0; i < loop.body.size(); ++i)
      take_rows(kernel(loop.body[i]), i, loop.counter, plan, inside, static_cast<int>(buffers), places.start);
    const Step made{loop};
    if (stretch_length(schedule_, std::span(&made, 1), target_) == 1) {
      ++count_;
      return true;
    }
    for (std::size_t i = 0; i < before.size(); ++i) kernel(loop.body[i]) = std::move(before[i]);
    schedule_.buffers.resize(buffers);
    return false;
  }

  static void take_rows(Kernel& k, std::size_t number, const std::string& counter, const Plan& plan,
                        const std::vector<ScratchValue>& inside, int scratch, const Expr& own) {
    const Expr count = Expr::symbol(counter, 0, plan.images * plan.trips - 1), trips(plan.trips);
    const Substitution named = {{std::string(kTrip), plan.images > 1 ? floor_mod(count, trips) : count}};
    const Rows& rows = plan.rows[number];
    const auto axis = static_cast<std::size_t>(row_axis(k, plan.images) - k.axes.data());
    const std::string name = k.axes[axis].name, image = k.axes[0].name;
    const Expr var = rows.count == 1 ? Expr(0) : Expr::axis(name, Expr(rows.count)), start = rows.start.substitute(named);
    const auto rewrite = [&](Expr& e, int operand) {
      const int id = operand < 0 ? -1 : buffer_of(k, operand);
      const auto value = std::find_if(inside.begin(), inside.end(), [&](const ScratchValue& v) { return v.buffer == id; });
      const bool local = value != inside.end();
      Substitution by = {{name, var + start}};
      if (plan.images > 1) by[image] = local ? Expr(0) : floor_div(count, trips);
      e = e.substitute(by);
      if (!local) return;
      const Handed& handed = plan.handed.at(id);
      e = e - plan.rows[handed.writer].start.substitute(named) * Expr(handed.slice) + own + Expr(value->offset);
    };
    for (ScalarNode& n : k.nodes) {
      rewrite(n.index, n.kind == ScalarNode::Kind::load ? n.operand : -1);
      for (Expr& e : n.guard) rewrite(e, -1);
    }
    for (Store& s : k.stores) rewrite(s.index, s.operand);
    for (Operand& o : k.operands) {
      if (std::any_of(inside.begin(), inside.end(), [&](const ScratchValue& v) { return v.buffer == o.buffer; }))
        o.buffer = scratch;
    }
    k.axes[axis].extent = Expr(rows.count);
    k.axes[axis].var = var;
    if (plan.images > 1) {
      k.axes[0].extent = Expr(1);
      k.axes[0].var = Expr(0);
    }
    k.flops = floor_div(k.flops * Expr(rows.count), Expr(rows.all * plan.images));
    k.bytes = floor_div(k.bytes * Expr(rows.count), Expr(rows.all * plan.images));
  }

  static constexpr std::string_view kTrip = "row_tile";

  Schedule& schedule_;
  const Target& target_;
  const bool batched_;
  const std::int64_t cache_;
  const std::map<int, int> uses_;
  int count_ = 0;
};

void make_row_tiles(Schedule& schedule, const Target& target, bool batched) {
  RowTiles all(schedule, target, batched);
  for (EntrySchedule& entry : schedule.entries) all.steps(entry.steps);
}

}  // namespace

void fuse_row_tiles(Schedule& schedule, const ScheduleContext& context) { make_row_tiles(schedule, context.target, false); }

void fuse_batched_row_tiles(Schedule& schedule, const ScheduleContext& context) {
  make_row_tiles(schedule, context.target, true);
}

}  // namespace oclc
