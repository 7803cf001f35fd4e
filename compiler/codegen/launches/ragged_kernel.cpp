#include "compiler/codegen/launches/ragged_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/ragged_family.h"
#include "compiler/kernels/ragged_objects.h"
#include "compiler/ops/user_op.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kMembers = "members";

// Members that a GPU's group finds by comparing its tile with numbers of the text, where these are known: it waits for no load.
constexpr std::size_t kMostCompared = 16;

class RaggedKernel {
 public:
  RaggedKernel(std::string name, const RaggedStep& group, const Schedule& schedule, const Target& target)
      : name_(std::move(name)),
        schedule_(schedule),
        target_(target),
        title_(title_of(group, schedule)),
        members_(kernels_of(schedule, group.body)),
        objects_(RaggedObjects::of_group(schedule, members_)),
        family_(family_of(members_)) {}

  SeveralKernels run() {
    family_.kernel.name = name_ + "_of";
    const GeneratedKernel one = generate(family_.kernel, schedule_.buffers, target_);
    OCLC_CHECK(!one.tile_source.empty() && one.packed.empty() && one.groups.size() == 1 && one.local_floats.empty(),
               "members of a group are tiles without memory of their own");
    for (const RaggedObject& object : objects_.list()) out_.buffers.push_back({object.buffer, object.written});
    choose_columns();
    GeneratedKernel& g = out_.kernel;
    fill_table(one.groups[0]);
    for (const Kernel* member : members_) {
      add_sources(out_.sources, member->sources);
      out_.flops += member->flops;
      out_.bytes += member->bytes;
    }
    g.name = name_;
    g.local = one.local;
    g.schedule = fmt::format("{} in one launch; {}", title_, one.schedule);
    g.head = head();
    g.tile_source = one.tile_source + tile_function(one);
    g.source = g.tile_source + kernel_function(g);
    for (std::size_t i = 0; i < out_.buffers.size(); ++i) g.arguments.push_back({.operand = static_cast<int>(i)});
    g.arguments.push_back({.kind = KernelArgument::Kind::table, .operand = 0});
    return std::move(out_);
  }

 private:
  // Of an operand: the objects in which it lies, by members.
  struct Column {
    std::size_t place = 0;
    std::vector<std::size_t> objects;
    std::size_t which = 0;  // where there are several
  };

  const Kernel& kernel() const { return family_.kernel; }

  void choose_columns() {
    std::size_t next = 1;
    for (std::size_t o = 0; o < kernel().operands.size(); ++o) {
      Column column;
      column.place = next++;
      for (const Kernel* member : members_) {
        const std::size_t object = objects_.of(member->operands[o].buffer);
        if (std::find(column.objects.begin(), column.objects.end(), object) == column.objects.end())
          column.objects.push_back(object);
      }
      if (column.objects.size() > 1) column.which = next++;
      columns_.push_back(std::move(column));
    }
    first_size_ = next;
    first_number_ = first_size_ + family_.symbols.size();
    width_ = first_number_ + family_.numbers.size();
  }

  void fill_table(const Expr& tiles) {
    MemberTable table;
    table.numbers.assign(1 + width_ * members_.size(), 0);
    table.numbers[0] = static_cast<std::int64_t>(members_.size());
    Expr total(0);
    bool is_known = true;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const std::size_t row = 1 + m * width_;
      const auto put = [&](std::size_t column, const Expr& value) {
        if (value.is_constant())
          table.numbers[row + column] = value.value();
        else
          table.cells.push_back({.at = row + column, .value = value});
      };
      Substitution sizes;
      for (std::size_t s = 0; s < family_.symbols.size(); ++s) {
        sizes.emplace(family_.symbols[s], family_.sizes[s][m]);
        put(first_size_ + s, family_.sizes[s][m]);
      }
      for (std::size_t n = 0; n < family_.numbers.size(); ++n)
        put(first_number_ + n,
            Expr(static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(family_.numbers[n][m])))));
      for (std::size_t o = 0; o < columns_.size(); ++o) {
        const Operand& operand = members_[m]->operands[o];
        const std::size_t object = objects_.of(operand.buffer);
        const auto which = std::find(columns_[o].objects.begin(), columns_[o].objects.end(), object);
        if (columns_[o].objects.size() > 1) put(columns_[o].which, Expr(which - columns_[o].objects.begin()));
        table.cells.push_back({.at = row + columns_[o].place,
                               .buffer = operand.buffer,
                               .base = objects_.list()[object].buffer,
                               .written = operand.written});
      }
      // The first tile: of all before, which only the device's sizes may tell.
      if (m > 0 && is_known) {
        table.numbers[row] = total.value();
        first_tiles_.push_back(total.value());
      }
      const Expr own = tiles.substitute(sizes);
      total += own;
      if (is_known && total.is_constant()) continue;
      is_known = false;
      if (m + 1 < members_.size()) table.cells.push_back({.at = row + width_, .value = own, .plus = static_cast<int>(row)});
    }
    out_.kernel.groups = {total};
    out_.kernel.tables.push_back(std::move(table));
  }

  std::string place_of(std::size_t operand) const {
    const Column& column = columns_[operand];
    std::string object = fmt::format("b{}", column.objects.back());
    for (std::size_t i = column.objects.size() - 1; i-- > 0;)
      object = fmt::format("row[{}] == {} ? b{} : {}", column.which, i, column.objects[i], object);
    return fmt::format("({}) + row[{}]", object, column.place);
  }

  std::string pointers(bool with_offsets) const {
    std::string text;
    for (std::size_t i = 0; i < objects_.list().size(); ++i) {
      const RaggedObject& object = objects_.list()[i];
      text += fmt::format("__global {}{}* b{}, ", object.written ? "" : "const ", c_type(object.dtype), i);
      if (with_offsets) text += fmt::format("const long b{}_at, ", i);
    }
    return text;
  }

  std::string tile_function(const GeneratedKernel& one) const {
    std::vector<std::string> arguments;
    for (const KernelArgument& argument : one.arguments) {
      if (argument.kind == KernelArgument::Kind::operand) {
        arguments.push_back(place_of(static_cast<std::size_t>(argument.operand)));
        continue;
      }
      const auto symbol = std::find(family_.symbols.begin(), family_.symbols.end(), argument.symbol);
      OCLC_CHECK(symbol != family_.symbols.end(), "sizes of a family stand in its table");
      arguments.push_back(fmt::format("row[{}]", first_size_ + static_cast<std::size_t>(symbol - family_.symbols.begin())));
    }
    for (std::size_t n = 0; n < family_.numbers.size(); ++n)
      arguments.push_back(fmt::format("as_float((int)row[{}])", first_number_ + n));
    return fmt::format(
        "void {0}_tile({1}__global const long* {2}, const int tile) {{\n"
        "  __global const long* row = {3};\n"
        "  {4}_tile({5}, tile - (int)row[0]);\n}}\n\n",
        name_, pointers(false), kMembers, row_of_tile(), kernel().name, fmt::join(arguments, ", "));
  }

  // C text.
  std::string row_of_tile() const {
    const bool compares =
        !target_.items_are_cores() && first_tiles_.size() + 1 == members_.size() && members_.size() <= kMostCompared;
    if (!compares) return fmt::format("oclc_member({}, {}, tile)", kMembers, width_);
    std::vector<std::string> passed;
    for (const std::int64_t first : first_tiles_) passed.push_back(fmt::format("(tile >= {})", first));
    return fmt::format("{} + 1 + {} * ({})", kMembers, width_, fmt::join(passed, " + "));
  }

  std::string kernel_function(const GeneratedKernel& g) const {
    std::string moves, arguments;
    for (std::size_t i = 0; i < objects_.list().size(); ++i) {
      moves += fmt::format("  b{0} += b{0}_at;\n", i);
      arguments += fmt::format("b{}, ", i);
    }
    return fmt::format(
        "__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}__global const long* {}) {{\n{}"
        "  {}_tile({}{}, get_group_id(0));\n}}\n",
        g.local[0], name_, pointers(true), kMembers, moves, name_, arguments, kMembers);
  }

  // The members with their sizes.
  std::string head() const {
    std::string text = fmt::format("// {}: {}\n", name_, title_);
    text += fmt::format("// cost      {} flops, {} bytes and a table of {} rows of {} numbers\n", out_.flops.text(),
                        out_.bytes.text(), members_.size(), width_);
    text += fmt::format("// launch    {} groups of {}; {}\n", out_.kernel.groups[0].text(), out_.kernel.local[0],
                        out_.kernel.schedule);
    text += "// row       first tile";
    for (std::size_t o = 0; o < columns_.size(); ++o) {
      text += ", place of " + kernel().operands[o].name;
      if (columns_[o].objects.size() > 1) text += ", its memory object";
    }
    text += "; then\n";
    constexpr std::size_t kMostShown = 16;
    for (std::size_t m = 0; m < std::min(members_.size(), kMostShown); ++m) {
      std::vector<std::string> sizes;
      for (const auto& column : family_.sizes) sizes.push_back(column[m].text());
      for (const auto& column : family_.numbers) sizes.push_back(fmt::format("{}", column[m]));
      text += fmt::format("//   {}: {}\n", comment_safe(fmt::format("{}", fmt::join(members_[m]->sources, "+"))),
                          fmt::join(sizes, ", "));
    }
    if (members_.size() > kMostShown) text += fmt::format("//   and {} more\n", members_.size() - kMostShown);
    return text;
  }

  const std::string name_;
  const Schedule& schedule_;
  const Target& target_;
  const std::string title_;
  const std::vector<const Kernel*> members_;
  const RaggedObjects objects_;
  Family family_;
  std::vector<Column> columns_;  // by operand
  std::size_t first_size_ = 0, first_number_ = 0, width_ = 0;
  std::vector<std::int64_t> first_tiles_;  // of the members behind the first, as far as they are known
  SeveralKernels out_;
};

}  // namespace

SeveralKernels generate_ragged(const std::string& name, const RaggedStep& group, const Schedule& schedule,
                               const Target& target) {
  return RaggedKernel(name, group, schedule, target).run();
}

std::string title_of(const RaggedStep& group, const Schedule& schedule) {
  const Kernel& first = schedule.kernel(group.body.front());
  std::string what;
  for (std::size_t begin = 0; begin < first.formula.size();) {
    const std::size_t end = std::min(first.formula.find(' ', begin), first.formula.size());
    const std::string word = first.formula.substr(begin, end - begin);
    const UserOp* own = find_user_op(word);
    what += (what.empty() ? "" : " ") + (own ? own->title : word);
    begin = end + 1;
  }
  return fmt::format("{} x {}", what.empty() ? first.name : what, group.body.size());
}

}  // namespace oclc
