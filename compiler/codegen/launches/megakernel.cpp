#include "compiler/codegen/launches/megakernel.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "compiler/codegen/attention/attention_kernel.h"
#include "compiler/codegen/launches/megakernel_arguments.h"
#include "compiler/codegen/launches/megakernel_groups.h"
#include "compiler/codegen/launches/merge_functions.h"
#include "compiler/codegen/launches/ragged_kernel.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

class MegakernelWriter : private MegakernelArguments {
 public:
  using MegakernelArguments::MegakernelArguments;

  MegakernelCode run(std::span<const Step> steps) {
    for (const Step& step : steps) part(step);
    const auto count = static_cast<std::int64_t>(out_.kernels);
    GeneratedKernel& g = out_.kernel;
    g.name = name_;
    g.groups = {Expr(megakernel_groups(target_))};
    g.local = {1};
    g.schedule = fmt::format("{} kernels, one after another, whose tiles the groups claim", count);
    g.head = fmt::format("// {}: {}\n{}\n", name_, g.schedule, heads_);
    const std::string progress = pointer_name(kProgress, true);
    g.source = functions();
    g.source += fmt::format("__attribute__((reqd_work_group_size(1, 1, 1)))\n__kernel void {}({}) {{\n", name_, signature());
    if (!local_.empty()) {
      // A constant for each, so that the text grows with their number alone.
      int number = 0;
      g.source += "  enum { floats0 = 0";
      for (const std::string& floats : local_) {
        g.source += fmt::format(", floats{1} = ({2}) > floats{0} ? ({2}) : floats{0}", number, number + 1, floats);
        ++number;
      }
      g.source += fmt::format(" }};\n  __local float space[floats{}];\n", number);
    }
    g.source += moves_ + "  const int from_back = 2 * get_group_id(0) >= get_num_groups(0);\n";
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
      g.source += chosen({i}, bodies_[i]);
      if (bodies_.size() > 1) g.part_bytes[i] += static_cast<std::uint32_t>(bodies_[i].size());
    }
    g.source += fmt::format("  oclc_leave({}, {});\n}}\n", progress, 2 * count + 1);
    return std::move(out_);
  }

 private:
  // What runs through the tiles of one kernel.
  struct Claims {
    std::string tiles, calls;
    std::size_t number = 0;  // of the kernel
  };
  struct TileFunction {
    std::string name, text;
    std::set<std::size_t> parts;  // that call it
  };

  // `text` where one of these parts is wanted.
  std::string chosen(const std::set<std::size_t>& parts, const std::string& text) const {
    return bodies_.size() < 2 ? text : where_wanted(parts, text);
  }

  // The tile functions. Macros choose among parts, so that a runtime can build some of them as a program of its own: no
  // function of another part costs the driver's compiler time.
  std::string functions() {
    std::string text;
    if (bodies_.size() > 1) {
      out_.kernel.part_bytes.resize(bodies_.size());
      text = macros_of_parts();
    }
    std::vector<std::string> names, texts;
    for (const TileFunction& f : functions_) {
      names.push_back(f.name + "_tile");
      texts.push_back(f.text);
      if (bodies_.size() > 1) out_.kernel.part_bytes[*f.parts.begin()] += static_cast<std::uint32_t>(f.text.size());
    }
    std::vector<bool> is_merged(functions_.size(), false);
    for (const MergedFunction& merged : merge_functions(names, texts)) {
      std::set<std::size_t> parts;
      std::string alone;
      for (const std::size_t i : merged.members) {
        is_merged[i] = true;
        parts.insert(functions_[i].parts.begin(), functions_[i].parts.end());
        alone += chosen(functions_[i].parts, functions_[i].text);
      }
      text += "#ifdef OCLC_UNOPTIMIZED\n" + chosen(parts, merged.text + merged.macros) + "#else\n" + alone + "#endif\n";
    }
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      if (!is_merged[i]) text += chosen(functions_[i].parts, functions_[i].text);
    }
    return text;
  }

  void part(const Step& step) {
    MegakernelCode::Part part;
    part.kernels = kernels_of(schedule_, step);
    const Kernel& first = *part.kernels.front();
    const auto* one_loop = step.as<LoopStep>();
    const auto* loops = step.as<ParallelLoopsStep>();
    const bool attends = step.is<AttentionStep>(), whole = one_loop && one_loop->slots > 0;
    const auto* group = step.as<RaggedStep>();
    part.name = group ? title_of(*group, schedule_)
                      : first.name + (loops      ? "_loops"
                                      : one_loop ? "_loop"
                                      : attends  ? "_attention"
                                                 : "");
    part.anchor = step.is_loop() ? "loop" : attends ? "attention" : group ? "ragged" : name_of(first.anchor);
    part.instances = group ? group->body.size() : 0;
    std::vector<Claims> claims;
    if (loops) {
      for (const Step& one : loops->body) claim(one, target_, part, claims);
    } else {
      claim(step, whole ? one_core(target_) : target_, part, claims);
    }
    body_ = fmt::format("  if (first <= {0} && {0} < last) {{  // {1}\n", out_.parts.size(), part.name);
    if (loops)
      whole_loops(*loops, claims);
    else if (whole)
      whole_trips(*one_loop, claims);
    else if (one_loop)
      loop(*one_loop, claims);
    else
      body_ += fmt::format(
          "    const int tiles = (int)({0});\n"
          "    for (int tile; (tile = oclc_claim({1}, tiles, from_back)) < tiles;) {{\n"
          "      {2};\n      oclc_finish({3});\n    }}\n    oclc_wait({3}, tiles);\n",
          claims[0].tiles, claimed_at(claims[0]), claims[0].calls, done_at(claims[0]));
    bodies_.push_back(body_ + "  }\n");
    out_.parts.push_back(std::move(part));
  }

  // What runs through the kernels of a step, a loop or not.
  void claim(const Step& step, const Target& target, MegakernelCode::Part& part, std::vector<Claims>& claims) {
    if (step.is<AttentionStep>()) {
      SeveralKernels all = generate_attention(std::string(kPartName), step, schedule_, target);
      claims.push_back(claims_of(all.kernel, all.buffers, part.name, part));
      part.flops += all.flops;
      part.bytes += all.bytes;
      return;
    }
    if (const auto* group = step.as<RaggedStep>()) {
      SeveralKernels all = generate_ragged(std::string(kPartName), *group, schedule_, target);
      claims.push_back(claims_of(all.kernel, all.buffers, part.name, part));
      for (const Kernel* kernel : part.kernels) {
        for (const Operand& o : kernel->operands) part.buffers.push_back({o.buffer, o.written});
      }
      part.flops += all.flops;
      part.bytes += all.bytes;
      return;
    }
    const auto* loop = step.as<LoopStep>();
    const Substitution first_trip = {{step.counter(), Expr(0)}};
    for (const Kernel* kernel : kernels_of(schedule_, step)) {
      claims.push_back(claims_of(*kernel, part, target));
      part.flops += loop ? loop->trip * kernel->flops.substitute(first_trip) : kernel->flops;
      part.bytes += loop ? loop->trip * kernel->bytes.substitute(first_trip) : kernel->bytes;
    }
  }

  // Counters go on from trip to trip, modulo 2^32. A group that comes when all is done leaves at once.
  void loop(const LoopStep& step, const std::vector<Claims>& claims) {
    for (const std::string& s : step.trip.symbols()) symbols_.insert(s);
    symbols_.erase(step.counter);
    const Claims& last = claims.back();
    body_ += fmt::format(
        "    const long trips = {0};\n"
        "    for (long {1} = oclc_done({2}, trips * ({3})) ? trips : 0; {1} < trips; ++{1}) {{\n",
        step.trip.c_text([](std::string_view s) { return fmt::format("dim_{}", s); }), "dim_" + step.counter, done_at(last),
        last.tiles);
    for (const Claims& c : claims)
      body_ += fmt::format(
          "      {{\n        const int tiles = (int)({0});\n"
          "        for (int tile; (tile = oclc_claim_trip({1}, {4}, tiles, from_back)) < tiles;) {{\n"
          "          {2};\n          oclc_finish({3});\n        }}\n        oclc_wait_trip({3}, ({4} + 1) * tiles);\n      "
          "}}\n",
          c.tiles, claimed_at(c), c.calls, done_at(c), "dim_" + step.counter);
    body_ += "    }\n";
  }

  // Groups that hold a place claim trips and do all tiles of one; none waits for another before all trips are claimed.
  void whole_trips(const LoopStep& step, const std::vector<Claims>& claims) {
    for (const std::string& s : step.trip.symbols()) symbols_.insert(s);
    symbols_.erase(step.counter);
    symbols_.erase(step.slot);
    const Claims& first = claims.front();
    body_ += fmt::format(
        "    const int trips = (int)({0}), place = oclc_take({1} + 2, {2});\n"
        "    for (int trip; place >= 0 && (trip = oclc_claim({1}, trips, from_back)) < trips;) {{\n"
        "      const long dim_{3} = trip, dim_{4} = place;\n",
        step.trip.c_text([](std::string_view s) { return fmt::format("dim_{}", s); }), claimed_at(first), step.slots,
        step.counter, step.slot);
    for (const Claims& c : claims)
      body_ += fmt::format("      for (int tile = 0; tile < (int)({}); ++tile) {};\n", c.tiles, c.calls);
    body_ += fmt::format(
        "      oclc_finish({1});\n    }}\n    if (place >= 0) oclc_give({0} + 2 + place);\n    oclc_wait({1}, trips);\n",
        claimed_at(first), done_at(first));
  }

  // Groups claim loops, and do all tiles of all trips of one: in every second trip from the last on, since a second-level cache
  // that is too small for all weights still holds those.
  void whole_loops(const ParallelLoopsStep& step, const std::vector<Claims>& claims) {
    for (const std::string& s : step.trip.symbols()) symbols_.insert(s);
    const std::string claimed = claimed_at(claims.front()), done = done_at(claims.front());
    body_ += fmt::format(
        "    const long trips = {0};\n"
        "    for (int loop; (loop = oclc_claim({1}, {2}, from_back)) < {2};) {{\n",
        step.trip.c_text([](std::string_view s) { return fmt::format("dim_{}", s); }), claimed, step.body.size());
    auto next = claims.begin();
    for (std::size_t i = 0; i < step.body.size(); ++i) {
      const LoopStep& one = *step.body[i].as<LoopStep>();
      symbols_.erase(one.counter);
      body_ +=
          fmt::format("      for (long dim_{0} = loop == {1} ? 0 : trips; dim_{0} < trips; ++dim_{0}) {{\n", one.counter, i);
      for (std::size_t k = 0; k < one.body.size(); ++k, ++next)
        body_ += fmt::format(
            "        for (int tiles = (int)({0}), i = 0; i < tiles; ++i) {{\n"
            "          const int tile = dim_{1} % 2 ? tiles - 1 - i : i;\n          {2};\n        }}\n",
            next->tiles, one.counter, next->calls);
      body_ += "      }\n";
    }
    body_ += fmt::format("      oclc_finish({0});\n    }}\n    oclc_wait({0}, {1});\n", done, step.body.size());
  }

  std::string counter_at(std::int64_t line) {
    return fmt::format("{} + {}", pointer_name(kProgress, true), line * kProgressStride);
  }
  std::string claimed_at(const Claims& c) { return counter_at(static_cast<std::int64_t>(2 * c.number + 1)); }
  std::string done_at(const Claims& c) { return counter_at(static_cast<std::int64_t>(2 * c.number + 2)); }

  Claims claims_of(const Kernel& kernel, MegakernelCode::Part& part, const Target& target) {
    Kernel named = kernel;
    named.name = kPartName;
    GeneratedKernel g = generate(named, schedule_.buffers, target);
    std::vector<SeveralKernels::Argument> operands;
    for (const Operand& o : kernel.operands) operands.push_back({o.buffer, o.written});
    return claims_of(g, operands, kernel.name, part);
  }

  Claims claims_of(GeneratedKernel& g, const std::vector<SeveralKernels::Argument>& operands, const std::string& name,
                   MegakernelCode::Part& part) {
    OCLC_CHECK(g.local.size() == 1 && g.local[0] == 1, "a megakernel has groups of one work-item");
    const auto count = static_cast<int>(operands.size());
    out_.kernel.amx = out_.kernel.amx || g.amx;
    const std::vector<int> packed = take_packed(g.packed);
    std::vector<std::string> arguments;
    for (const KernelArgument& argument : g.arguments) {
      if (argument.kind == KernelArgument::Kind::dimension) {
        arguments.push_back("dim_" + argument.symbol);
        symbols_.insert(argument.symbol);
        continue;
      }
      if (argument.kind == KernelArgument::Kind::table) {
        arguments.push_back(add_table(g.tables.at(static_cast<std::size_t>(argument.operand))));
        continue;
      }
      const SeveralKernels::Argument operand =
          argument.operand < count ? operands[static_cast<std::size_t>(argument.operand)]
                                   : SeveralKernels::Argument{packed[static_cast<std::size_t>(argument.operand - count)]};
      const auto [buffer, written] = operand;
      // A table counts from where the memory object's buffer lies.
      const auto joined = g.tables.empty() ? joined_at(buffer) : std::string();
      arguments.push_back(joined.empty() ? pointer_name(buffer, written) : joined);
      part.buffers.push_back({joined.empty() ? buffer : kJoined, written});
    }
    const std::size_t number = out_.kernels++;
    const auto known = tiles_.emplace(g.tile_source, functions_.size());
    if (known.second) {
      const std::string function_name = fmt::format("{}_{}", name_, number);
      functions_.push_back({function_name, replaced(g.tile_source, kPartName, function_name), {}});
    }
    TileFunction& tile = functions_[known.first->second];
    tile.parts.insert(out_.parts.size());
    const std::string& function = tile.name;
    heads_ += replaced(g.head, kPartName, name);
    const Expr tiles = product(g.groups);
    for (const std::string& s : tiles.symbols()) symbols_.insert(s);
    std::string call = fmt::format("{}_tile({}, tile", function, fmt::join(arguments, ", "));
    if (!g.local_floats.empty()) {
      call += ", space";
      local_.insert(g.local_floats);
    }
    const std::string tile_count = tiles.c_text([](std::string_view s) { return fmt::format("dim_{}", s); });
    return {tile_count, call + ")", number};
  }

  std::map<std::string, std::size_t> tiles_;  // by text: which of the functions
  std::vector<TileFunction> functions_;
  std::set<std::string> local_;
  std::string heads_, body_;         // body_: of the part at hand
  std::vector<std::string> bodies_;  // of the parts
};

}  // namespace

MegakernelCode generate_megakernel(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                   const Target& target) {
  if (target.megakernel() == Megakernel::groups) return generate_megakernel_groups(name, steps, schedule, target);
  return MegakernelWriter(name, schedule, target).run(steps);
}

}  // namespace oclc
