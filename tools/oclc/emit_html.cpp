#include "tools/oclc/emit_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace oclc::tool {
namespace {

constexpr double kChartWidth = 1000, kChartHeight = 320;

constexpr std::string_view kStyle = R"(<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .2em .6em; border-bottom: 1px solid #ddd }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
.bar { display: inline-block; height: .7em; background: #4a7fb5 } pre { background: #f5f5f5; padding: 1em; overflow-x: auto }
svg { width: 100%; background: #f5f5f5 } rect { stroke: #fff; stroke-width: .5 } summary { cursor: pointer }
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

std::string launches_table(const EntryFigures& entry, const std::map<std::string, const GeneratedFile*>& sources) {
  std::string out =
      "<table><tr><th>kernel</th><th>anchor</th><th>nodes</th><th class=n>calls</th><th class=n>flops</th><th "
      "class=n>bytes</th>"
      "<th>share of bytes</th></tr>\n";
  for (const LaunchFigures& launch : entry.launches) {
    const auto source = sources.find(launch.name);
    const std::string name = source == sources.end() ? escaped(launch.name)
                                                     : fmt::format("<details><summary>{}</summary><pre>{}</pre></details>",
                                                                   escaped(launch.name), escaped(source->second->source));
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td>"
        "<td><span class=bar style=\"width:{:.1f}%\"></span></td></tr>\n",
        name, escaped(launch.anchor), escaped(launch.nodes), launch.calls, scaled(launch.flops, "flop"),
        scaled(launch.bytes, "B"), entry.bytes > 0 ? 100 * launch.bytes / entry.bytes : 0);
  }
  return out + "</table>\n";
}

// Buffers of the arena: along x the launches that use them, along y their place.
std::string arena_chart(const plan::Plan& plan, std::uint32_t index, const EntryFigures& entry) {
  const package::EntryMemory& memory = entry.memory;
  if (memory.arena_bytes == 0) return {};
  const double steps = static_cast<double>(std::max<std::size_t>(entry.launches.size(), 1));
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=none>\n", kChartWidth, kChartHeight);
  for (std::uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    const plan::Buffer& buffer = *plan.buffers()->Get(i);
    if (buffer.kind() != plan::BufferKind::arena || buffer.entry() != static_cast<int>(index) || memory.sizes[i] == 0) continue;
    const double scale = kChartHeight / static_cast<double>(memory.arena_bytes);
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"hsl({},45%,60%)\"><title>{}: {}, launches "
        "{} "
        "to {}</title></rect>\n",
        buffer.first() * kChartWidth / steps, static_cast<double>(memory.offsets[i]) * scale,
        (buffer.last() - buffer.first() + 1) * kChartWidth / steps, static_cast<double>(memory.sizes[i]) * scale, i * 47 % 360,
        escaped(buffer.name()->string_view()), scaled(static_cast<double>(memory.sizes[i]), "B"), buffer.first(),
        buffer.last());
  }
  return out + "</svg>\n";
}

}  // namespace

std::string plan_as_html(const Compiled& compiled, const PlanView& view, const plan::Plan& plan, const SymbolValues& at) {
  std::map<std::string, const GeneratedFile*> sources;
  for (const GeneratedFile& file : compiled.plan.files) sources[file.name] = &file;
  std::string out = fmt::format("<!doctype html><meta charset=utf-8><title>{0}</title>\n{1}<h1>{0}</h1>\n",
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
