#include "compiler/ir/parse_literals.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace oclc {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 28;  // of a constant in a text

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  if (text.find_first_not_of(' ') != std::string_view::npos) parts.push_back(text.substr(start));
  return parts;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> read_number(std::string_view text) {
  text = trimmed(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// splitmix64: of floats from -1 to 1, of integers from 0 to 7.
void fill_random(HostTensor& tensor, std::uint64_t state) {
  for (std::int64_t i = 0, count = tensor.elements(); i < count; ++i) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    if (is_float(tensor.dtype()))
      tensor.set(i, static_cast<double>(z >> 40) * 0x1p-23 - 1);
    else
      tensor.set_int(i, static_cast<std::int64_t>(tensor.dtype() == DType::boolean ? z >> 63 : z >> 61));
  }
}

}  // namespace

std::int64_t Literals::integer() {
  const std::string_view text = in_.number();
  const auto value = read_number<std::int64_t>(text);
  if (!value) in_.fail("an integer", fmt::format("'{}'", text));
  return *value;
}

std::pair<std::int64_t, std::int64_t> Literals::bounds() {
  std::int64_t lo = 1, hi = kUnbounded;
  if (in_.take_word("in")) {
    in_.expect('[');
    lo = integer();
    in_.expect(',');
    hi = integer();
    in_.expect(']');
  } else if (in_.take('>')) {
    in_.expect('=');
    lo = integer();
  }
  return {lo, hi};
}

Expr Literals::expression(std::string_view text) {
  const auto e = parse_expr(trimmed(text), symbols);
  if (!e) in_.fail("an expression", fmt::format("'{}'", trimmed(text)));
  return *e;
}

std::vector<Expr> Literals::expressions(std::string_view text) {
  std::vector<Expr> list;
  for (const auto part : split_list(text)) list.push_back(expression(part));
  return list;
}

TensorType Literals::type() {
  const std::string name = in_.word("an element type");
  const auto element = dtype_of(name);
  if (!element) in_.fail("an element type", "'" + name + "'");
  in_.expect('[');
  return {*element, expressions(in_.enclosed(']'))};
}

Layout Literals::layout(std::size_t rank) {
  Layout layout;
  if (!in_.take('@')) return layout;
  in_.expect('[');
  std::vector<bool> seen(rank);
  while (!in_.take(']')) {
    if (!layout.order.empty()) in_.expect(',');
    const std::int64_t dim = integer();
    if (dim < 0 || dim >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(dim)])
      in_.fail("an order of the dimensions", std::to_string(dim));
    seen[static_cast<std::size_t>(dim)] = true;
    layout.order.push_back(static_cast<int>(dim));
  }
  if (layout.order.size() != rank)
    in_.fail(fmt::format("an order of {} dimensions", rank), std::to_string(layout.order.size()));
  return layout;
}

HostTensor Literals::zeros(const TensorType& type) {
  std::vector<std::int64_t> shape;
  std::int64_t count = 1;
  for (const Expr& dim : type.shape) {
    if (!dim.is_constant() || dim.value() < 0) in_.fail("a tensor of constant shape", type.text());
    shape.push_back(dim.value());
    if (__builtin_mul_overflow(count, dim.value(), &count) || count > kMostElements)
      in_.fail(fmt::format("a tensor of at most {} elements", kMostElements), type.text());
  }
  return {type.dtype, std::move(shape)};
}

HostTensor Literals::payload(const TensorType& type) {
  HostTensor tensor = zeros(type);
  const std::int64_t count = tensor.elements();
  if (type.dtype == DType::string) {
    texts(tensor);
    return tensor;
  }
  if (in_.take_word("splat")) {
    const std::string_view value = in_.number();
    for (std::int64_t i = 0; i < count; ++i) set(tensor, i, value);
  } else if (in_.take_word("random")) {
    fill_random(tensor, static_cast<std::uint64_t>(integer()));
  } else if (in_.take_word("xxh3")) {
    in_.fail("a tensor's values", "its hash alone");
  } else if (in_.take('[')) {
    const auto parts = split_list(in_.enclosed(']'));
    if (static_cast<std::int64_t>(parts.size()) != count)
      in_.fail(fmt::format("{} elements", count), std::to_string(parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) set(tensor, static_cast<std::int64_t>(i), trimmed(parts[i]));
  } else {
    if (count != 1) in_.fail(fmt::format("{} elements", count), "one");
    set(tensor, 0, in_.number());
  }
  return tensor;
}

void Literals::texts(HostTensor& tensor) {
  const std::int64_t count = tensor.elements();
  if (in_.take_word("splat")) {
    const std::string text = in_.text();
    for (std::int64_t i = 0; i < count; ++i) tensor.set_text(i, text);
  } else if (in_.take_word("xxh3")) {
    in_.fail("a tensor's values", "its hash alone");
  } else if (in_.take('[')) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (i > 0) in_.expect(',');
      tensor.set_text(i, in_.text());
    }
    in_.expect(']');
  } else {
    if (count != 1) in_.fail(fmt::format("{} elements", count), "one");
    tensor.set_text(0, in_.text());
  }
}

void Literals::set(HostTensor& tensor, std::int64_t i, std::string_view text) {
  const auto bad = [&] { in_.fail(fmt::format("an element of type {}", name_of(tensor.dtype())), fmt::format("'{}'", text)); };
  switch (tensor.dtype()) {
    case DType::f64: {
      const auto v = read_number<double>(text);
      return v ? tensor.set(i, *v) : bad();
    }
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f4e2m1:
    case DType::f8e8m0: {
      const auto v = read_number<float>(text);
      return v ? tensor.set(i, static_cast<double>(*v)) : bad();
    }
    case DType::boolean:
      return text == "true" || text == "false" ? tensor.set_int(i, text == "true") : bad();
    case DType::u64: {
      const auto v = read_number<std::uint64_t>(text);
      return v ? tensor.set_int(i, static_cast<std::int64_t>(*v)) : bad();
    }
    default: {
      const auto v = read_number<std::int64_t>(text);
      return v ? tensor.set_int(i, *v) : bad();
    }
  }
}

Attribute Literals::attribute() {
  const char c = in_.peek();
  if (c == '"') return in_.text();
  if (c == '(') {
    in_.take('(');
    return expressions(in_.enclosed(')'));
  }
  if (c == '[') return list();
  for (const bool reals : {true, false}) {
    if (!in_.take_word(reals ? "reals" : "texts")) continue;
    in_.expect('[');
    in_.expect(']');
    if (reals) return std::vector<double>();
    return std::vector<std::string>();
  }
  const std::string_view text = in_.number();
  if (const auto element = dtype_of(text)) {
    if (!in_.take('[')) return *element;
    return payload({*element, expressions(in_.enclosed(']'))});
  }
  if (const auto v = read_number<std::int64_t>(text)) return *v;
  if (const auto v = read_number<double>(text)) return *v;
  in_.fail("an attribute's value", fmt::format("'{}'", text));
}

Attribute Literals::list() {
  in_.expect('[');
  if (in_.peek() == '"') {
    std::vector<std::string> texts{in_.text()};
    while (!in_.take(']')) {
      in_.expect(',');
      texts.push_back(in_.text());
    }
    return texts;
  }
  std::vector<std::int64_t> ints;
  std::vector<double> reals;
  for (const auto part : split_list(in_.enclosed(']'))) {
    const auto i = read_number<std::int64_t>(part);
    const auto r = read_number<double>(part);
    if (!r) in_.fail("a number", fmt::format("'{}'", trimmed(part)));
    if (i) ints.push_back(*i);
    reals.push_back(*r);
  }
  if (ints.size() == reals.size()) return ints;
  if (!ints.empty()) in_.fail("a list of integers or of reals", "a mixed list");
  return reals;
}

}  // namespace oclc
