#include "examples/spiking/picture.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace spiking {
namespace {

constexpr double kWidth = 900, kHeight = 300, kEdge = 30;
constexpr const char* kColors[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd"};

std::string begun(const std::string& title) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%.0f\" y=\"18\">%s</text>\n",
      kWidth + 2 * kEdge, kHeight + 2 * kEdge, kEdge, title.c_str());
  return text;
}

void write(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << "</svg>\n";
  if (!out.flush()) throw std::runtime_error("cannot write '" + file + "'");
}

std::string point(const char* form, double x, double y) {
  char text[96];
  std::snprintf(text, sizeof text, form, kEdge + x, kEdge + y);
  return text;
}

}  // namespace

void draw_spikes(const std::string& file, const std::string& title, const std::vector<float>& spikes, std::int64_t neurons) {
  const auto n = static_cast<std::size_t>(neurons);
  const std::size_t steps = spikes.size() / n;
  std::string text = begun(title) + "<path stroke=\"black\" stroke-width=\"1\" d=\"";
  for (std::size_t t = 0; t < steps; ++t)
    for (std::size_t i = 0; i < n; ++i)
      if (spikes[t * n + i] != 0)
        text += point("M%.1f %.1fv2", kWidth * static_cast<double>(t) / static_cast<double>(steps),
                      kHeight * static_cast<double>(i) / static_cast<double>(n));
  write(file, text + "\"/>\n");
}

void draw_curves(const std::string& file, const std::string& title,
                 const std::vector<std::pair<std::string, std::vector<float>>>& curves) {
  float low = 0, high = 0;
  for (const auto& [name, values] : curves)
    for (const float v : values) low = std::min(low, v), high = std::max(high, v);
  const double scale = kHeight / std::max(static_cast<double>(high - low), 1e-9);
  std::string text = begun(title);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const auto& [name, values] = curves[c];
    const std::string color = kColors[c % std::size(kColors)];
    text += "<polyline fill=\"none\" stroke=\"" + color + "\" points=\"";
    for (std::size_t i = 0; i < values.size(); ++i)
      text += point("%.1f,%.1f ", kWidth * static_cast<double>(i) / static_cast<double>(values.size()),
                    static_cast<double>(high - values[i]) * scale);
    text += "\"/>\n" + point("<text x=\"%.1f\" y=\"%.1f\" ", kWidth - 120, 16.0 * static_cast<double>(c)) + "fill=\"" + color +
            "\">" + name + "</text>\n";
  }
  write(file, text);
}

}  // namespace spiking
