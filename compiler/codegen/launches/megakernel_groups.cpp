#include "compiler/codegen/launches/megakernel_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/codegen/contraction/choose.h"
#include "compiler/codegen/contraction/emit.h"
#include "compiler/codegen/launches/megakernel_arguments.h"
#include "compiler/codegen/launches/merge_functions.h"
#include "compiler/codegen/loops/group_reduction.h"
#include "compiler/codegen/loops/loop_nest.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/ir/typical.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Compute capability, times ten, from which on groups of a launch wait for one another.
constexpr int kGroupsWait = 70;
// Constants of so many bytes are asked for when their part comes up, smaller ones when the launch begins.
constexpr std::int64_t kLeastFetched = 64 << 10;

// So many tiles are more than any group's rank, and than any part has.
constexpr std::int64_t kMany = 1 << 30;

// Elements that vectors of any width are aligned to.
constexpr std::int64_t kAlignedElements = 16;

// Makes the only store to an operand that nothing loads begin at the operand's first element, and says how many elements it
// began behind that: kernels that store side by side into one buffer have the same text then.
std::int64_t take_offset(Kernel& kernel, int operand) {
  const auto is_its = [&](const auto& access) { return access.operand == operand; };
  if (std::count_if(kernel.stores.begin(), kernel.stores.end(), is_its) != 1 ||
      std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                  [&](const ScalarNode& n) { return n.kind == ScalarNode::Kind::load && is_its(n); }))
    return 0;
  Store& store = *std::find_if(kernel.stores.begin(), kernel.stores.end(), is_its);
  const Expr offset = at_first(kernel, store.index);
  if (!offset.is_constant() || offset.value() < 0 || offset.value() % kAlignedElements != 0) return 0;
  store.index = store.index - offset;
  return offset.value();
}

// Parts of the same text are one case of a switch; where their operands lie is told by a table in local memory.
class GroupsCode : private MegakernelArguments {
 public:
  using MegakernelArguments::MegakernelArguments;

  MegakernelCode run(std::span<const Step> steps) {
    for (const Step& step : steps) add(step);
    GeneratedKernel& g = out_.kernel;
    g.name = name_;
    g.groups = {Expr(megakernel_groups(target_))};
    g.local = {static_cast<std::uint32_t>(target_.work_group)};
    g.schedule = fmt::format("{} kernels, one after another, whose tiles the groups claim", out_.kernels);
    g.head = fmt::format("// {}: {}\n{}\n", name_, g.schedule, heads_);
    progress_ = pointer_name(kProgress, true);
    const std::string parameters = signature();
    g.own_kernels = true;
    g.source = macros_of_parts();
    make_groups();
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      std::string text;
      for (const int kind : groups_[group].kinds) text += kinds_[static_cast<std::size_t>(kind)].function;
      const std::string& merged = groups_[group].merged.text;
      g.part_bytes.push_back(static_cast<std::uint32_t>(merged.empty() ? text.size() : merged.size()));
      if (!merged.empty()) text = fmt::format("#ifdef {}_LAST\n{}#else\n{}#endif\n", name_, merged, text);
      g.source += where_wanted({group}, text);
    }
    // The whole takes a driver's compiler longer than its parts' own kernels: those may be built first, some in each process.
    g.source += fmt::format("#if OCLC_NV_SM >= {} && !defined({}_LAST)\n", kGroupsWait, name_) + tables() +
                head_of("", parameters) + whole() + "}\n#else\n" + head_of("", parameters) + "}\n";
    for (std::size_t group = 0; group < groups_.size(); ++group)
      g.source += where_wanted({group}, head_of(fmt::format("_k{}", group), parameters) + own_kernel(groups_[group]) + "}\n");
    g.source += "#endif\n";
    return std::move(out_);
  }

 private:
  struct Kind {
    std::string name, function, tiles, arguments;  // C text: what does a tile, the tiles' number
    std::size_t pointers = 0;

    std::string call() const { return fmt::format("{}({})", name, arguments); }
  };
  // Kinds that differ in constants: they have one kernel of their own.
  struct Group {
    std::vector<int> kinds;
    MergedFunction merged;  // of several
  };
  struct Placed {
    int kind = 0;
    std::int64_t tiles = kMany;  // where they are known
    std::vector<std::string> pointers;
    std::vector<std::pair<std::size_t, std::int64_t>> weights, small;  // constants: which of the pointers, and their bytes
  };

  void add(const Step& step) {
    MegakernelCode::Part part;
    part.kernels = kernels_of(schedule_, step);
    const Kernel& kernel = *part.kernels.front();
    part.name = kernel.name;
    part.anchor = name_of(kernel.anchor);
    part.flops = kernel.flops;
    part.bytes = kernel.bytes;
    Kernel named = kernel;
    named.name = kPartName;
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < named.operands.size(); ++i) offsets.push_back(take_offset(named, static_cast<int>(i)));
    GeneratedKernel g = tile_of(named);
    OCLC_CHECK(g.local.size() == 1 && g.local[0] == static_cast<std::uint32_t>(target_.work_group),
               "a megakernel on a GPU has groups of the target's size");
    const auto own = static_cast<int>(schedule_.buffers.size()), operands = static_cast<int>(kernel.operands.size());
    const std::vector<int> packed = take_packed(g.packed);
    Placed placed;
    std::vector<std::string> arguments;
    for (const KernelArgument& argument : g.arguments) {
      if (argument.kind == KernelArgument::Kind::dimension) {
        arguments.push_back("dim_" + argument.symbol);
        symbols_.insert(argument.symbol);
        continue;
      }
      const bool is_operand = argument.operand < operands;
      const auto at = static_cast<std::size_t>(argument.operand);
      const int buffer = is_operand ? kernel.operands[at].buffer : packed[at - kernel.operands.size()];
      const bool written = is_operand && kernel.operands[at].written;
      const Buffer& memory = is_operand ? schedule_.buffers[static_cast<std::size_t>(buffer)]
                                        : out_.kernel.packed[static_cast<std::size_t>(buffer - own)];
      const auto joined = joined_at(buffer);
      const std::size_t number = placed.pointers.size();
      arguments.push_back(fmt::format("({}__global {}*)memory[at + {}]", written ? "" : "const ",
                                      c_type(is_operand ? kernel.operands[at].dtype : memory.dtype), number));
      if (const std::int64_t bytes = is_operand ? bytes_read(kernel, memory) : bytes_of(memory); bytes > 0)
        (bytes < kLeastFetched ? placed.small : placed.weights).emplace_back(number, bytes);
      const std::int64_t offset = is_operand ? offsets[at] : 0;
      placed.pointers.push_back((joined.empty() ? pointer_name(buffer, written) : joined) +
                                (offset > 0 ? fmt::format(" + {}", offset) : ""));
      part.buffers.push_back({joined.empty() ? buffer : kJoined, written});
    }
    const Expr tiles = product(g.groups);
    for (const std::string& s : tiles.symbols()) symbols_.insert(s);
    const std::string count = tiles.c_text([](std::string_view s) { return fmt::format("dim_{}", s); });
    const std::string list = fmt::format("{}, tile{}", fmt::join(arguments, ", "),
                                         g.local_floats.empty() ? "" : fmt::format(", (__local {}*)space", g.local_type));
    const auto [known, is_new] = known_.emplace(g.tile_source + count + list, static_cast<int>(kinds_.size()));
    placed.kind = known->second;
    placed.tiles = std::min(tiles.constant().value_or(kMany), kMany);
    if (is_new) {
      const std::string function = fmt::format("{}_{}", name_, placed.kind);
      kinds_.push_back({function + "_tile", replaced(g.tile_source, kPartName, function), count, list, placed.pointers.size()});
      if (!g.local_floats.empty()) floats_ = std::max<std::size_t>(floats_, std::stoul(g.local_floats));
    }
    heads_ += replaced(g.head, kPartName, kernel.name);
    places_ += placed.pointers.size();
    placed_.push_back(std::move(placed));
    out_.parts.push_back(std::move(part));
    ++out_.kernels;
  }

  GeneratedKernel tile_of(const Kernel& kernel) const {
    const std::int64_t groups = megakernel_groups(target_);
    if (kernel.contraction) {
      if (const auto choice = choose_part(kernel, schedule_.buffers, target_))
        return emit_contraction(kernel, *choice, schedule_.buffers, target_);
    }
    auto shared = generate_group_reduction(kernel, target_, groups);
    return shared ? std::move(*shared) : generate_strided_loops(kernel, target_, groups);
  }

  static std::int64_t bytes_of(const Buffer& buffer) { return static_cast<std::int64_t>(buffer.constant.bytes()); }

  // Of a constant that the kernel reads as a whole; 0 of others.
  static std::int64_t bytes_read(const Kernel& kernel, const Buffer& buffer) {
    const std::int64_t bytes = bytes_of(buffer);
    return buffer.kind == BufferKind::constant && typical(kernel.bytes) >= static_cast<double>(bytes) ? bytes : 0;
  }

  std::string head_of(const std::string& suffix, const std::string& parameters) const {
    return fmt::format("__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}{}({}) {{\n", target_.work_group,
                       name_, suffix, parameters);
  }

  // What each part is, where its operands are told, and the constants that are asked for.
  std::string tables() const {
    std::vector<std::string> parts, fetches, small;
    std::vector<std::size_t> ends;
    std::size_t place = 0;
    for (const Placed& p : placed_) {
      parts.push_back(fmt::format("{}, {}, {}", p.kind, place, p.tiles));
      for (const auto& [pointer, size] : p.weights) fetches.push_back(fmt::format("{}, {}", place + pointer, size));
      for (const auto& [pointer, size] : p.small) small.push_back(fmt::format("{}, {}", place + pointer, size));
      ends.push_back(fetches.size());
      place += p.pointers.size();
    }
    if (fetches.empty()) fetches.emplace_back("0");
    if (small.empty()) small.emplace_back("0");
    return fmt::format(
        "__constant int {0}_parts[] = {{{1}}};  // what to do, where its operands are told, tiles\n"
        "__constant int {0}_fetches[] = {{{2}}};  // places and bytes of weights\n"
        "__constant int {0}_ends[] = {{{3}}};  // of each part's fetches\n"
        "__constant int {0}_small[] = {{{4}}};  // places and bytes of other constants\n",
        name_, fmt::join(parts, ", "), fmt::join(fetches, ", "), fmt::join(ends, ", "), fmt::join(small, ", "));
  }

  std::string space() const {
    return fmt::format("  __local float4 space[{}];\n", std::max<std::size_t>(1, (floats_ + 3) / 4));
  }

  std::string whole() const {
    std::string table, tiles, calls;
    std::size_t place = 0, smalls = 0;
    for (const Placed& p : placed_) {
      smalls += p.small.size();
      for (const std::string& pointer : p.pointers)
        table += fmt::format("    memory[{}] = (__global char*)({});\n", place++, pointer);
    }
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      tiles += fmt::format("      case {}: tiles = (int)({}); break;\n", kind, kinds_[kind].tiles);
      calls += fmt::format("        case {}: {}; break;\n", kind, kinds_[kind].call());
    }
    std::string text = space();
    text += fmt::format(
        "  __global char* __local memory[{0}];\n  __local int turns[4];\n{1}"
        "  const int item = get_local_id(0), rank = item == 0 ? oclc_group_rank({3}, {7}, {8}) : 0;\n"
        "  if (item == 0) {{\n{2}    turns[1] = oclc_group_begin({3}, first);\n"
        "    turns[0] = {9};\n  }}\n  barrier(CLK_LOCAL_MEM_FENCE);\n"
        "  for (int i = item; i < {4}; i += {5}) oclc_fetch_small(memory[{6}_small[2 * i]], {6}_small[2 * i + 1]);\n"
        "  int tile = turns[0], flip = 2, before = 0;\n",
        std::max<std::size_t>(1, places_), moves_, table, progress_, smalls, target_.work_group, name_, lines(),
        target_.compute_units, claim("turns[1]"));
    text += fmt::format(
        "  for (int part = turns[1]; part < last; ++part) {{\n"
        "    const int kind = {0}_parts[3 * part], at = {0}_parts[3 * part + 1], more = part + 1 < last;\n"
        "    for (int i = part > 0 ? {0}_ends[part - 1] : 0; i < {0}_ends[part]; ++i)\n"
        "      oclc_fetch(memory[{0}_fetches[2 * i]], {0}_fetches[2 * i + 1]);\n"
        "    int tiles = 0;\n    switch (kind) {{\n{1}    }}\n"
        "    if (tile >= tiles) {{\n"
        "      if (item == 0) turns[flip] = more ? {2} : 0;\n"
        "      barrier(CLK_LOCAL_MEM_FENCE);\n      tile = turns[flip];\n      flip ^= 2;\n      before = tiles;\n"
        "      continue;\n    }}\n",
        name_, tiles, claim("part + 1"));
    text += fmt::format(
        "    if (item == 0) {{\n      turns[flip + 1] = more ? {3} : 0;\n"
        "      if (more && rank == 0 && turns[flip + 1] == 0) {0}[1] = part;\n"
        "      if (part > first) oclc_group_wait({0}, part - 1, before);\n    }}\n"
        "    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n"
        "    const int next = turns[flip + 1];\n"
        "    while (true) {{\n"
        "      const int other = item == 0 ? oclc_turn({0}, part) : 0;\n"
        "      switch (kind) {{\n{1}      }}\n"
        "      if (item == 0) turns[flip] = other;\n"
        "      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n"
        "      tile = turns[flip];\n      flip ^= 2;\n"
        "      if (item == 0) oclc_group_finish({0}, part);\n"
        "      if (tile >= tiles) break;\n    }}\n"
        "    tile = next;\n    before = tiles;\n  }}\n"
        "  oclc_group_leave({0}, {2}, turns);\n",
        progress_, calls, lines(), claim("part + 1"));
    return text;
  }

  // Of counters.
  std::int64_t lines() const { return progress_ints(out_.kernels) / kProgressStride; }

  // C text: the number of the tile of that part that the group shall do next, or kMany.
  std::string claim(const std::string& part) const {
    return fmt::format("(rank < {0}_parts[3 * ({1}) + 2] ? oclc_turn({2}, {1}) : {3})", name_, part, progress_, kMany);
  }

  // In the order in which parts first are of them.
  void make_groups() {
    std::map<std::string, std::vector<int>> alike;  // kinds by their arguments
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) alike[kinds_[kind].arguments].push_back(static_cast<int>(kind));
    std::map<int, Group> groups;  // by their first kinds
    for (const auto& [arguments, kinds] : alike) {
      std::vector<std::string> names, texts;
      for (const int kind : kinds) {
        names.push_back(kinds_[static_cast<std::size_t>(kind)].name);
        texts.push_back(kinds_[static_cast<std::size_t>(kind)].function);
      }
      std::set<int> left(kinds.begin(), kinds.end());
      for (MergedFunction& merged : merge_functions(names, texts)) {
        Group group;
        for (const std::size_t member : merged.members) group.kinds.push_back(kinds[member]), left.erase(kinds[member]);
        group.merged = std::move(merged);
        groups.emplace(group.kinds.front(), std::move(group));
      }
      for (const int kind : left) groups[kind].kinds = {kind};
    }
    std::vector<std::size_t> group_of(kinds_.size());
    for (auto& [first, group] : groups) {
      for (const int kind : group.kinds) group_of[static_cast<std::size_t>(kind)] = groups_.size();
      groups_.push_back(std::move(group));
    }
    for (std::size_t i = 0; i < placed_.size(); ++i)
      out_.parts[i].own_kernel = fmt::format("_k{}", group_of[static_cast<std::size_t>(placed_[i].kind)]);
  }

  // The parts of a group's kinds, each a launch: `first` is the part. Where kernels are built first, the constants of a kind
  // are variables; elsewhere literals.
  std::string own_kernel(const Group& group) const {
    const Kind& any = kinds_[static_cast<std::size_t>(group.kinds.front())];
    std::string text = space() + moves_ +
                       fmt::format("  __global char* memory[{}];\n  int kind = 0, tiles = 0;\n  switch (first) {{\n",
                                   std::max<std::size_t>(1, any.pointers));
    for (std::size_t part = 0; part < placed_.size(); ++part) {
      const Placed& placed = placed_[part];
      if (std::find(group.kinds.begin(), group.kinds.end(), placed.kind) == group.kinds.end()) continue;
      text += fmt::format("    case {}:\n", part);
      for (std::size_t i = 0; i < any.pointers; ++i)
        text += fmt::format("      memory[{}] = (__global char*)({});\n", i, placed.pointers[i]);
      text += fmt::format("      kind = {};\n      break;\n", placed.kind);
    }
    text += "  }\n  const int at = 0;\n";
    const auto of_kinds = [&](const auto& what) {
      std::string cases = "  switch (kind) {\n";
      for (std::size_t i = 0; i < group.kinds.size(); ++i)
        cases +=
            fmt::format("    case {}:{} break;\n", group.kinds[i], what(i, kinds_[static_cast<std::size_t>(group.kinds[i])]));
      return cases + "  }\n";
    };
    const std::string rounds = "for (int tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) ";
    const std::string alone = of_kinds([&](std::size_t, const Kind& kind) {
      return fmt::format("\n      tiles = (int)({});\n      {}{};\n     ", kind.tiles, rounds, kind.call());
    });
    if (group.merged.text.empty()) return text + alone;
    text += fmt::format("#ifdef {}_LAST\n", name_);
    std::string arguments = any.arguments;
    for (const MergedFunction::Constant& constant : group.merged.constants) {
      text += fmt::format("  {} {} = 0;\n", constant.type, constant.name);
      arguments += ", " + constant.name;
    }
    text += of_kinds([&](std::size_t i, const Kind& kind) {
      std::string set = fmt::format(" tiles = (int)({});", kind.tiles);
      for (const MergedFunction::Constant& c : group.merged.constants) set += fmt::format(" {} = {};", c.name, c.values[i]);
      return set;
    });
    return text + fmt::format("  {}{}({});\n#else\n", rounds, group.merged.name, arguments) + alone + "#endif\n";
  }

  std::vector<Kind> kinds_;
  std::vector<Group> groups_;
  std::map<std::string, int> known_;  // kinds by their texts
  std::vector<Placed> placed_;
  std::size_t places_ = 0, floats_ = 0;  // pointers of all parts; of local memory
  std::string progress_, heads_;
};

}  // namespace

MegakernelCode generate_megakernel_groups(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                          const Target& target) {
  return GroupsCode(name, schedule, target).run(steps);
}

}  // namespace oclc
