#include "compiler/schedule/fuse_row_tiles.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/row_access.h"
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

  // Rows of a value that a later kernel reads: stride * s + first .. stride * s + last, where s is the start of this kernel's.
  struct Needed {
    std::size_t reader = 0;
    std::int64_t stride = 0, first = 0, last = 0;
    bool operator==(const Needed&) const = default;
  };

  // The last of the kernels from j on whose rows begin where those of j do.
  static std::size_t same_start(const std::vector<Rows>& rows, std::size_t j) {
    std::size_t last = rows.size() - 1;
    while (last > j && rows[last].start != rows[j].start) --last;
    return last;
  }

  static std::vector<std::int64_t> at_trips(const Expr& e, std::int64_t trips) {
    std::vector<std::int64_t> values;
    for (std::int64_t t = 0; t < trips; ++t) values.push_back(e.evaluate({{std::string(kTrip), t}}).value());
    return values;
  }

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

  // As reads_of(), which costs most of what is done here; of the steps that best() looks at.
  const std::optional<RowReads>& reads_once(std::size_t at, const ScalarNode& load, const Kernel& reader, std::int64_t images,
                                            const Handed& value) const {
    const auto [known, is_new] = reads_.try_emplace({at, &load - reader.nodes.data()});
    if (is_new) known->second = reads_of(load, reader, images, value.slice, value.rows);
    return known->second;
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
    std::vector<std::vector<std::int64_t>> starts(body.size());  // of each kernel's rows, by trip
    for (std::size_t i = body.size(); i-- > 0;) {
      if (i + 1 < body.size()) starts[i + 1] = at_trips(out.rows[i + 1].start, trips);
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
      // Rows of what it computes that later kernels read in trip t: those of each `needed`.
      std::vector<Needed> needed;
      for (const Store& s : k.stores) {
        const int id = buffer_of(k, s.operand);
        for (std::size_t j = i + 1; j < body.size(); ++j) {
          const Kernel& reader = kernel(body[j]);
          for (const ScalarNode& n : reader.nodes) {
            if (n.kind != ScalarNode::Kind::load || buffer_of(reader, n.operand) != id) continue;
            const auto reads = reads_once(j, n, reader, images, values.at(id));
            if (!reads) return std::nullopt;
            const std::size_t start = reads->stride == 0 ? body.size() - 1 : same_start(out.rows, j);
            const Needed rows{start, reads->stride, reads->first, reads->stride * (out.rows[j].count - 1) + reads->last};
            if (std::find(needed.begin(), needed.end(), rows) == needed.end()) needed.push_back(rows);
            if (needed.size() > kMostReads) return std::nullopt;
          }
        }
      }
      if (whole) {
        const auto own_starts = at_trips(mine.start, trips);
        const bool kept = std::none_of(k.stores.begin(), k.stores.end(),
                                       [&](const Store& s) { return values.at(buffer_of(k, s.operand)).local; });
        for (const Needed& rows : needed) {
          for (std::size_t t = 0; t < own_starts.size(); ++t) {
            const std::int64_t begin = rows.stride * starts[rows.reader][t];
            if (std::min(begin + rows.last, mine.all - 1) >= own_starts[t] + mine.count) return std::nullopt;
            if ((own || !kept) && std::max<std::int64_t>(begin + rows.first, 0) < own_starts[t]) return std::nullopt;
          }
        }
        continue;
      }
      if (needed.empty()) return std::nullopt;
      const auto first_of = [&](const Needed& rows) { return Expr(rows.stride) * out.rows[rows.reader].start + rows.first; };
      Expr from = first_of(needed.front());
      for (const Needed& rows : needed) from = min(from, first_of(rows));
      for (std::size_t t = 0; t < static_cast<std::size_t>(trips); ++t) {
        std::int64_t low = INT64_MAX, high = INT64_MIN;
        for (const Needed& rows : needed) {
          low = std::min(low, rows.stride * starts[rows.reader][t] + rows.first);
          high = std::max(high, rows.stride * starts[rows.reader][t] + rows.last);
        }
        mine.count = std::max(mine.count, high - low + 1);
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
    reads_.clear();
    if (!list.front().is_kernel()) return out;
    const std::int64_t images = batched_ ? leading_images(kernel(list.front())) : 1;
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
  mutable std::map<std::pair<std::size_t, std::ptrdiff_t>, std::optional<RowReads>> reads_;  // by step and node
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
