#include "tools/oclrun/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "runtime/package/text/unicode.h"

namespace oclc::oclrun {
namespace {

constexpr std::uint64_t kMaxRows = 16;
constexpr std::uint64_t kFirstElements = 16;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) text += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return package::shown(text + "\"");
}

std::string top_of_row(const io::Tensor& tensor, std::uint64_t begin, std::uint64_t size, int top) {
  std::vector<std::uint64_t> order(size);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  const auto before = [&](std::uint64_t a, std::uint64_t b) {
    const double x = tensor.at(begin + a);
    const double y = tensor.at(begin + b);
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);  // NaN last
    return x > y || (x == y && a < b);
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(size, static_cast<std::uint64_t>(top)));
  std::partial_sort(order.begin(), end, order.end(), before);
  std::string text;
  for (auto it = order.begin(); it != end; ++it)
    text += (text.empty() ? "" : "  ") + std::to_string(*it) + ": " + number(tensor.at(begin + *it));
  return text;
}

}  // namespace

std::string tensor_text(const io::Tensor& tensor, int top) {
  std::string text = tensor.name + " " + oclc_dtype_name(tensor.dtype) + " [";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) text += (d ? ", " : "") + std::to_string(tensor.shape[d]);
  text += "]\n";
  const std::uint64_t count = tensor.elements();
  if (count == 0) return text + "  (no elements)\n";
  if (tensor.dtype == OCLC_STRING) {
    text += " ";
    for (std::uint64_t i = 0; i < std::min(count, kFirstElements); ++i) text += " " + quoted(tensor.text_at(i));
    return text + (count > kFirstElements ? " ...\n" : "\n");
  }
  if (top == 0) {
    text += " ";
    for (std::uint64_t i = 0; i < std::min(count, kFirstElements); ++i) text += " " + number(tensor.at(i));
    return text + (count > kFirstElements ? " ...\n" : "\n");
  }
  const auto row = static_cast<std::uint64_t>(tensor.shape.empty() ? 1 : tensor.shape.back());
  const std::uint64_t rows = count / row;
  for (std::uint64_t r = 0; r < std::min(rows, kMaxRows); ++r)
    text += "  row " + std::to_string(r) + "  " + top_of_row(tensor, r * row, row, top) + "\n";
  if (rows > kMaxRows) text += "  ... " + std::to_string(rows - kMaxRows) + " more rows\n";
  return text;
}

void print(std::FILE* to, const std::string& text) {
  const std::string shown = package::shown(text, true);
  std::fwrite(shown.data(), 1, shown.size(), to);
}

}  // namespace oclc::oclrun
