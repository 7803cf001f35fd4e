#include "compiler/kernels/parse_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <optional>

#include "compiler/kernels/schedule_lines.h"
#include "compiler/kernels/schedule_names.h"
#include "compiler/support/integer_of.h"

namespace oclc {
namespace {

constexpr std::string_view kIf = " if ", kElse = " else ", kNonNegative = " >= 0", kAnd = " && ";

std::string_view trimmed_text(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

class KernelParser : private ScheduleLines {
 public:
  KernelParser(Scanner& in, const OpLookup& find_op) : ScheduleLines(in), find_op_(find_op) {}

  Kernel run() {
    const std::string anchor = in_.word("an anchor");
    const auto known = anchor_named(anchor);
    if (!known) in_.fail("an anchor", quotes(anchor));
    kernel_.anchor = *known;
    if (*known == Anchor::code)
      in_.fail("a kernel of the compiler's own", "one with a user's body, which its text does not hold");
    kernel_.name = in_.word("the kernel's name");
    in_.expect('{');
    in_.end_of_line();
    for (in_.lines(); !in_.take('}'); in_.lines()) {
      line();
      in_.space();
      in_.end_of_line();
    }
    return std::move(kernel_);
  }

 private:
  void line() {
    if (in_.take_word("of")) {
      kernel_.sources = quoted_texts();
    } else if (in_.take_word("formula")) {
      kernel_.formula = in_.text();
    } else if (in_.take_word("copy")) {
      kernel_.is_copy = true;
    } else if (in_.take_word("symbol")) {
      symbol();
    } else if (in_.take_word("flops")) {
      kernel_.flops = expression_to_end();
    } else if (in_.take_word("bytes")) {
      kernel_.bytes = expression_to_end();
    } else if (in_.take_word("axis")) {
      axis(kernel_.axes);
    } else if (in_.take_word("reduce")) {
      axis(kernel_.reduction);
    } else if (in_.take_word("read")) {
      operand(false);
    } else if (in_.take_word("write")) {
      operand(true);
    } else if (in_.take('%')) {
      node();
    } else if (in_.take_word("stage")) {
      stage();
    } else if (in_.take_word("terms")) {
      for (const char* word : {"shared", "by"}) want(word);
      contraction().shares = literals_.integer();
      want("work-groups");
    } else if (in_.take_word("largest")) {
      for (const char* word : {"of", "windows", "of"}) want(word);
      do contraction().windows.push_back(literals_.integer());
      while (in_.take_word("x"));
    } else {
      store_or_contraction();
    }
  }

  void want(std::string_view word) {
    if (word == "work-groups") {  // no word of the scanner's letters
      want("work");
      in_.expect('-');
      return want("groups");
    }
    ScheduleLines::want(word);
  }

  Contraction& contraction() {
    if (!kernel_.contraction) in_.fail("the factors of a contraction first");
    return *kernel_.contraction;
  }

  void axis(std::vector<Axis>& list) {
    Axis made;
    made.name = in_.word("an axis' name");
    in_.expect('<');
    made.extent = expression_to_end();
    made.var = Expr::axis(made.name, made.extent);
    if (!symbols().emplace(made.name, made.var).second) in_.fail("a new axis", "a second " + made.name);
    list.push_back(std::move(made));
  }

  void operand(bool written) {
    Operand o;
    o.written = written;
    o.name = in_.word("an operand's name");
    in_.expect(':');
    o.dtype = dtype();
    want("buffer");
    o.buffer = number("a buffer's number");
    if (in_.peek() == '"') o.value = in_.text();
    o.replaced = in_.take_word("replaced");
    if (operand_of(o.name)) in_.fail("a new operand", "a second " + o.name);
    kernel_.operands.push_back(std::move(o));
  }

  std::optional<int> operand_of(std::string_view name) const {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i) {
      if (kernel_.operands[i].name == name) return static_cast<int>(i);
    }
    return std::nullopt;
  }
  int known_operand(const std::string& name) {
    const auto known = operand_of(name);
    if (!known) in_.fail("an operand", quotes(name));
    return *known;
  }

  // A node that stands before; `text` is "%3".
  NodeId node_named(std::string_view text) {
    NodeId id = -1;
    text = trimmed_text(text);
    if (text.starts_with('%')) {
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), id);
      if (error != std::errc() || end != text.data() + text.size()) id = -1;
    }
    if (id < 0 || static_cast<std::size_t>(id) >= kernel_.nodes.size()) in_.fail("a node defined before", quotes(text));
    return id;
  }
  NodeId node_id() {
    in_.expect('%');
    return node_named("%" + std::string(in_.number()));
  }

  double real(std::string_view text) {
    double value = 0;
    text = trimmed_text(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) in_.fail("a number", quotes(text));
    return value;
  }

  // "a >= 0 && b >= 0"
  std::vector<Expr> guard(std::string_view text) {
    std::vector<Expr> all;
    for (text = trimmed_text(text); !text.empty();) {
      const std::size_t end = std::min(text.find(kAnd), text.size());
      const std::string_view one = text.substr(0, end);
      if (!one.ends_with(kNonNegative)) in_.fail("a condition '.. >= 0'", quotes(one));
      all.push_back(expression(one.substr(0, one.size() - kNonNegative.size())));
      text.remove_prefix(std::min(end + kAnd.size(), text.size()));
    }
    return all;
  }

  // " if guard else what" behind a value; false if there is none. `what` becomes its text.
  bool condition(std::string_view text, ScalarNode& n, std::string_view& what) {
    const std::size_t from = text.find(kIf), otherwise = text.rfind(kElse);
    if (from == std::string_view::npos) return false;
    if (otherwise == std::string_view::npos || otherwise < from) in_.fail("' else ' behind a condition", quotes(text));
    const std::size_t begin = from + kIf.size();
    n.guard = otherwise <= begin ? std::vector<Expr>() : guard(text.substr(begin, otherwise - begin));
    what = trimmed_text(text.substr(otherwise + kElse.size()));
    return true;
  }

  void node() {
    const std::string_view id = in_.number();
    if (id != std::to_string(kernel_.nodes.size())) in_.fail(fmt::format("node %{}", kernel_.nodes.size()), quotes(id));
    in_.expect(':');
    ScalarNode n;
    n.dtype = dtype();
    in_.expect('=');
    value(trimmed_text(in_.rest_of_line()), n);
    kernel_.nodes.push_back(std::move(n));
  }

  void value(std::string_view text, ScalarNode& n) {
    std::string_view what;
    const std::size_t open = text.find_first_of("[(");
    if (text.starts_with('%')) {
      if (!condition(text, n, what)) in_.fail("' if ' behind a node", quotes(text));
      n.args = {node_named(text.substr(0, text.find(kIf)))};
      n.kind = what.starts_with('%') ? ScalarNode::Kind::choose : ScalarNode::Kind::select;
      if (what.starts_with('%'))
        n.args.push_back(node_named(what));
      else
        n.number = real(what);
    } else if (text.starts_with("stage ")) {
      n.kind = ScalarNode::Kind::reduced;
      const std::int64_t stage = integer_of(real(text.substr(6)));
      n.stage = static_cast<int>(std::clamp<std::int64_t>(stage, -1, INT_MAX));
    } else if (open == std::string_view::npos) {
      n.number = real(text);
    } else if (text[open] == '[') {
      load(text, open, n);
    } else {
      apply(text, open, n);
    }
  }

  void load(std::string_view text, std::size_t open, ScalarNode& n) {
    n.kind = ScalarNode::Kind::load;
    n.operand = known_operand(std::string(text.substr(0, open)));
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) in_.fail("']'", quotes(text));
    n.index = expression(text.substr(open + 1, close - open - 1));
    const std::string_view rest = text.substr(close + 1);
    std::string_view what;
    if (condition(rest, n, what))
      n.number = real(what);
    else if (!rest.empty())
      in_.fail("' if ' or the end of the line", quotes(rest));
  }

  void bits(std::string_view inside, ScalarNode& n) {
    const std::size_t comma = inside.find(", "), as = inside.find(" as ");
    if (comma == std::string_view::npos || as == std::string_view::npos || as < comma)
      in_.fail("'%NODE, TYPE as TYPE'", quotes(inside));
    n.kind = ScalarNode::Kind::bits;
    n.args = {node_named(inside.substr(0, comma))};
    n.bits_from = dtype_named(inside.substr(comma + 2, as - comma - 2));
    n.bits_to = dtype_named(inside.substr(as + 4));
  }

  void apply(std::string_view text, std::size_t open, ScalarNode& n) {
    if (!text.ends_with(')')) in_.fail("')'", quotes(text));
    const std::string_view name = text.substr(0, open);
    std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    if (name == "index") {
      n.kind = ScalarNode::Kind::index;
      n.index = expression(inside);
      return;
    }
    if (name == "bits") return bits(inside, n);
    n.kind = name == "cast" ? ScalarNode::Kind::cast : ScalarNode::Kind::apply;
    while (!inside.empty()) {
      const std::size_t end = std::min(inside.find(','), inside.size());
      n.args.push_back(node_named(inside.substr(0, end)));
      inside.remove_prefix(std::min(end + 1, inside.size()));
    }
    if (name == "cast") {
      if (n.args.size() != 1) in_.fail("one argument of cast", std::to_string(n.args.size()));
      return;
    }
    const OpDef* op = find_op_(name);
    if (!op || !op->scalar) in_.fail("an operator on scalars", quotes(name));
    n.op = op->scalar;
    n.op_name = op->name;
  }

  // "a, b": which of the kernel's axes they are.
  std::vector<int> axes_named(std::string_view text, const std::vector<Axis>& list) {
    std::vector<int> all;
    for (text = trimmed_text(text); !text.empty();) {
      const std::size_t end = std::min(text.find(','), text.size());
      const std::string_view name = trimmed_text(text.substr(0, end));
      std::size_t i = 0;
      while (i < list.size() && list[i].name != name) ++i;
      if (i == list.size()) in_.fail("an axis", quotes(name));
      all.push_back(static_cast<int>(i));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return all;
  }

  // 0: f32 = sum over y, x of %2 at %3
  void stage() {
    if (number("the stage's number") != static_cast<int>(kernel_.stages.size()))
      in_.fail(fmt::format("stage {}", kernel_.stages.size()), "another");
    in_.expect(':');
    Stage s;
    s.accumulator = dtype();
    in_.expect('=');
    const std::string name = in_.word("what a stage combines by");
    const auto known = combine_named(name);
    if (!known) in_.fail("what a stage combines by", quotes(name));
    s.combine = *known;
    want("over");
    const std::string_view rest = in_.rest_of_line();
    const std::size_t of = rest.rfind("of %");
    if (of == std::string_view::npos) in_.fail("'of %' and a node", quotes(rest));
    s.axes = axes_named(rest.substr(0, of), kernel_.reduction);
    const std::string_view ids = rest.substr(of + 3);
    const std::size_t at = ids.find(" at ");
    s.body = node_named(ids.substr(0, at));
    if (at != std::string_view::npos) s.arg_index = node_named(ids.substr(at + 4));
    kernel_.stages.push_back(std::move(s));
  }

  void store_or_contraction() {
    const std::string name = in_.word("a line of a kernel");
    if (in_.take('[')) return store(name);
    const auto asked = strategy_named(name);
    if (!asked) in_.fail("a line of a kernel", quotes(name));
    Contraction c;
    c.asked = *asked;
    if (in_.take_word("of")) {
      want("integers");
      c.integers = true;
    }
    in_.expect(':');
    c.a = node_id();
    want("x");
    c.b = node_id();
    while (in_.take(',')) {
      const std::string part = in_.word("batch, m, n or k");
      in_.expect('(');
      const std::string_view names = in_.enclosed(')');
      if (part != "batch" && part != "m" && part != "n" && part != "k") in_.fail("batch, m, n or k", quotes(part));
      (part == "batch" ? c.batch
       : part == "m"   ? c.m
       : part == "n"   ? c.n
                       : c.k) = axes_named(names, part == "k" ? kernel_.reduction : kernel_.axes);
    }
    kernel_.contraction = std::move(c);
  }

  // y0[index] = %6 over k if guard
  void store(const std::string& name) {
    Store s;
    s.operand = known_operand(name);
    s.index = expression(in_.enclosed(']'));
    in_.expect('=');
    const std::string_view rest = in_.rest_of_line();
    const std::size_t condition = std::min(rest.find(kIf), rest.size()), over = std::min(rest.find(" over "), condition);
    s.value = node_named(rest.substr(0, over));
    if (over < condition) s.row_axes = axes_named(rest.substr(over + 6, condition - over - 6), kernel_.reduction);
    if (condition < rest.size()) s.guard = guard(rest.substr(condition + kIf.size()));
    kernel_.stores.push_back(std::move(s));
  }

  const OpLookup& find_op_;
  Kernel kernel_;
};

}  // namespace

Kernel parse_kernel(Scanner& in, const OpLookup& find_op) { return KernelParser(in, find_op).run(); }

}  // namespace oclc
