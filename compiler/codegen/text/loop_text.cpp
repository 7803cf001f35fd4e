#include "compiler/codegen/text/loop_text.h"

#include <fmt/format.h>

namespace oclc {

int open_loops(Emitter& e, const std::vector<const Axis*>& axes) {
  int opened = 0;
  for (const Axis* axis : axes) {
    if (axis->extent == Expr(1)) continue;
    e.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", e.index_type(), axis->name, e.index(axis->extent)), {axis->name});
    ++opened;
  }
  return opened;
}

void open_unrolled(Emitter& e, const std::string& name, std::int64_t end, std::int64_t step,
                   const std::set<std::string>& axes) {
  const std::string_view type = e.index_type();
  if (end <= step) {
    e.open("", axes);
    e.line(fmt::format("const {} {} = 0;", type, name));
    return;
  }
  const std::string next = step == 1 ? "++" + name : fmt::format("{} += {}", name, step);
  e.open(fmt::format("#pragma unroll\nfor ({0} {1} = 0; {1} < {2}; {3})", type, name, end, next), axes);
}

void close_scopes(Emitter& e, int count) {
  for (int i = 0; i < count; ++i) e.close();
}

std::set<std::string> declare_coordinates(Emitter& e, const std::string& flat, const std::vector<const Axis*>& axes) {
  std::set<std::string> names;
  std::vector<std::string> lines;
  Expr divisor(1);
  for (std::size_t i = axes.size(); i-- > 0;) {
    const Axis& axis = *axes[i];
    const std::string quotient = divisor == Expr(1) ? flat : fmt::format("{} / ({})", flat, e.index(divisor));
    lines.push_back(fmt::format("const {} {} = {};", e.index_type(), axis.name,
                                i == 0 ? quotient : fmt::format("{} % ({})", quotient, e.index(axis.extent))));
    divisor *= axis.extent;
    names.insert(axis.name);
  }
  for (std::size_t i = lines.size(); i-- > 0;) e.line(lines[i]);
  return names;
}

int vector_width_for(const Expr& extent, int most) {
  int width = most;
  if (const auto c = extent.constant()) {
    while (width > 4 && width > *c) width /= 2;
    if (width > *c) width = 1;
  }
  return width;
}

void vector_loops(Emitter& e, const LoopRange& range, int width, const LoopBody& body) {
  const std::string &name = range.axis.name, &begin = range.begin, &end = range.end;
  const std::string_view type = e.index_type();
  const auto extent = range.axis.extent.constant();
  const bool tail = !(range.whole && extent && *extent % width == 0);
  if (width > 1) {
    e.set_vector_axis(name, width);
    if (tail) {
      e.line(fmt::format("{} {} = {};", type, name, begin));
      e.open(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", name, width, end), {name});
    } else {
      e.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", type, name, begin, end, width), {name});
    }
    body(width);
    e.close();
    e.set_vector_axis({}, 1);
    if (tail) {
      e.open(fmt::format("for (; {0} < {1}; ++{0})", name, end), {name});
      body(1);
      e.close();
    }
  } else {
    e.set_vector_axis({}, 1);
    e.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1})", type, name, begin, end), {name});
    body(1);
    e.close();
  }
}

void literal_vector_loops(Emitter& e, const Axis& axis, int width, const LoopBody& body, std::int64_t begin) {
  const std::int64_t extent = axis.extent.value();
  for (std::int64_t at = begin; at<extent; width = width> 4 ? width / 2 : 1) {
    const std::int64_t end = at + (extent - at) / width * width;
    if (end == at) continue;
    e.set_vector_axis(width > 1 ? axis.name : std::string(), width);
    e.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", e.index_type(), axis.name, at, end, width), {axis.name});
    body(width);
    e.close();
    at = end;
  }
  e.set_vector_axis({}, 1);
}

}  // namespace oclc
