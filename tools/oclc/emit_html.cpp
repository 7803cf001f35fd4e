#include "tools/oclc/emit_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace oclc::tool {
namespace {

// Of the chart, in its own units: where its axes begin and end.
constexpr double kLeft = 80, kRight = 1190, kTop = 12, kBottom = 330, kWidth = 1200, kHeight = 372;

constexpr std::string_view kStyle = R"(<style>
:root { color-scheme: light }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse; width: 100%; table-layout: fixed }
th, td { text-align: left; vertical-align: top; padding: .2em .6em; border-bottom: 1px solid #ddd; overflow-wrap: anywhere }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; width: 6.5em } th.a { width: 8em } th.k { width: 24em } th.s { width: 9em }
tr.part td { color: #555; border-bottom-style: dotted } tr.part td:first-child { padding-left: 2.2em }
.bar { display: inline-block; height: .7em; background: #4a7fb5 } tr.part .bar { background: #a9c3de }
pre { background: #f5f5f5; padding: 1em; overflow-x: auto; overflow-wrap: normal } summary { cursor: pointer }
svg { width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: #444 } .axis { stroke: #888; fill: none }
.grid { stroke: #e4e4e4 } .live { stroke: #b03a2e; stroke-width: 1.5; fill: none } rect.buffer { stroke: #fff; stroke-width: .5 }
</style>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string scaled(double value, std::string_view unit) {
  for (const std::string_view prefix : {"", "k", "M", "G"}) {
    if (value < 1000) return fmt::format("{:.3g} {}{}", value, prefix, unit);
    value /= 1000;
  }
  return fmt::format("{:.3g} T{}", value, unit);
}

std::string row(const LaunchFigures& launch, const std::string& name, double all_bytes, bool part) {
  return fmt::format(
      "<tr{}><td>{}</td><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td>"
      "<td><span class=bar style=\"width:{:.1f}%\"></span></td></tr>\n",
      part ? " class=part" : "", name, escaped(launch.anchor), escaped(launch.nodes),
      part ? std::string() : std::to_string(launch.calls), scaled(launch.flops, "flop"), scaled(launch.bytes, "B"),
      all_bytes > 0 ? 100 * launch.bytes / all_bytes : 0);
}

// A row a launch, and below it one for each of the steps that it does in turn.
std::string launches_table(const EntryFigures& entry, const std::map<std::string, const GeneratedFile*>& sources) {
  std::string out =
      "<table><tr><th class=k>kernel</th><th class=a>anchor</th><th>nodes</th><th class=n>calls</th><th class=n>flops</th>"
      "<th class=n>bytes</th><th class=s>share of bytes</th></tr>\n";
  for (const LaunchFigures& launch : entry.launches) {
    const auto source = sources.find(launch.name);
    out += row(launch,
               source == sources.end() ? escaped(launch.name)
                                       : fmt::format("<details><summary>{}</summary><pre>{}</pre></details>",
                                                     escaped(launch.name), escaped(source->second->source)),
               entry.bytes, false);
    for (const LaunchFigures& part : launch.parts) out += row(part, escaped(part.name), entry.bytes, true);
  }
  return out + "</table>\n";
}

// A buffer of the arena with its life in schedule steps: parts of launches, and launches without parts.
struct Block {
  std::string name;
  int first = 0, last = 0;
  std::uint64_t offset = 0, bytes = 0;
};

std::vector<Block> blocks_of(const plan::Plan& plan, std::uint32_t index, const package::EntryMemory& memory) {
  std::vector<Block> blocks;
  for (std::uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    const plan::Buffer& buffer = *plan.buffers()->Get(i);
    const bool here = buffer.kind() == plan::BufferKind::arena && buffer.entry() == static_cast<int>(index);
    if (!here || buffer.alias() >= 0 || memory.sizes[i] == 0) continue;
    blocks.push_back({buffer.name()->str(), buffer.first(), buffer.last(), memory.offsets[i], memory.sizes[i]});
  }
  return blocks;
}

std::size_t steps_of(const EntryFigures& entry) {
  std::size_t steps = 0;
  for (const LaunchFigures& launch : entry.launches) steps += std::max<std::size_t>(launch.parts.size(), 1);
  return std::max<std::size_t>(steps, 1);
}

// Lines and numbers of both axes: steps along x, bytes along y.
std::string axes(std::size_t steps, double bytes) {
  std::string out;
  for (int i = 0; i <= 4; ++i) {
    const double y = kBottom - i * (kBottom - kTop) / 4;
    out += fmt::format("<path class=grid d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=end>{}</text>\n", kLeft,
                       y, kRight, kLeft - 6, y + 4, scaled(bytes * i / 4, "B"));
  }
  const std::size_t apart = std::max<std::size_t>((steps + 9) / 10, 1);
  for (std::size_t step = 0; step <= steps; step += apart) {
    const double x = kLeft + static_cast<double>(step) * (kRight - kLeft) / static_cast<double>(steps);
    out += fmt::format("<path class=axis d=\"M{0:.1f} {1}v5\"/><text x=\"{0:.1f}\" y=\"{2}\" text-anchor=middle>{3}</text>\n",
                       x, kBottom, kBottom + 18, step);
  }
  return out + fmt::format(
                   "<path class=axis d=\"M{0} {1}V{2}H{3}\"/><text x=\"{3}\" y=\"{4}\" text-anchor=end>step of the "
                   "schedule</text>\n",
                   kLeft, kTop, kBottom, kRight, kBottom + 36);
}

// Buffers of the arena: along x the steps that use them, along y their place; and the bytes that are alive at each step.
std::string arena_chart(const plan::Plan& plan, std::uint32_t index, const EntryFigures& entry) {
  const auto bytes = static_cast<double>(entry.memory.arena_bytes);
  if (entry.memory.arena_bytes == 0) return {};
  const std::vector<Block> blocks = blocks_of(plan, index, entry.memory);
  std::size_t steps = steps_of(entry);
  for (const Block& b : blocks) steps = std::max(steps, static_cast<std::size_t>(b.last) + 1);
  const double step = (kRight - kLeft) / static_cast<double>(steps), scale = (kBottom - kTop) / bytes;
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"memory over the steps of {}\">\n", kWidth,
                                kHeight, escaped(entry.name)) +
                    axes(steps, bytes);
  std::vector<double> alive(steps, 0);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& b = blocks[i];
    const double height = static_cast<double>(b.bytes) * scale;
    out += fmt::format(
        "<rect class=buffer x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"hsl({},45%,60%)\"><title>{}: "
        "{}, "
        "steps {} to {}</title></rect>\n",
        kLeft + b.first * step, kBottom - static_cast<double>(b.offset) * scale - height, (b.last - b.first + 1) * step, height,
        i * 47 % 360, escaped(b.name), scaled(static_cast<double>(b.bytes), "B"), b.first, b.last);
    for (int s = b.first; s <= b.last; ++s) alive[static_cast<std::size_t>(s)] += static_cast<double>(b.bytes);
  }
  std::string line;
  for (std::size_t s = 0; s < steps; ++s)
    line += fmt::format("{}{:.1f} {:.1f}H{:.1f}", s ? "L" : "M", kLeft + static_cast<double>(s) * step,
                        kBottom - std::min(alive[s], bytes) * scale, kLeft + static_cast<double>(s + 1) * step);
  return out + fmt::format("<path class=live d=\"{}\"/>\n</svg>\n", line) +
         "<p>Rectangles: buffers of the arena at their places, as long as they are alive (the pointer shows name and size; "
         "colours "
         "tell neighbours apart). Red line: bytes alive at each step.</p>\n";
}

}  // namespace

std::string plan_as_html(const Compiled& compiled, const PlanView& view, const plan::Plan& plan, const SymbolValues& at) {
  std::map<std::string, const GeneratedFile*> sources;
  for (const GeneratedFile& file : compiled.plan.files) sources[file.name] = &file;
  std::string out = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>{0}</title>\n"
      "<link rel=icon href=\"data:,\">\n{1}<h1>{0}</h1>\n",
      escaped(plan.model()->string_view()), kStyle);
  out += fmt::format("<p>Compiled by oclc {} for target {}, precision {}. Constants {}.{}</p>\n",
                     escaped(plan.producer()->string_view()), escaped(plan.target()->string_view()),
                     escaped(plan.precision()->string_view()), scaled(static_cast<double>(view.constant_bytes()), "B"),
                     at.empty() ? std::string() : " Figures at " + escaped(dims_text(at)) + ".");
  for (std::uint32_t i = 0; i < view.entries(); ++i) {
    const EntryFigures entry = view.figures(i, at);
    out += fmt::format("<h2>{}</h2>\n<p>{} launches, {}, {} moved, arena {} ({} alive at most).</p>\n", escaped(entry.name),
                       entry.calls, scaled(entry.flops, "flop"), scaled(entry.bytes, "B"),
                       scaled(static_cast<double>(entry.memory.arena_bytes), "B"),
                       scaled(static_cast<double>(entry.memory.live_bytes), "B"));
    out += arena_chart(plan, i, entry) + launches_table(entry, sources);
  }
  return out;
}

}  // namespace oclc::tool
