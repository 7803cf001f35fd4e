#include "runtime/package/host_ops.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/package/images.h"
#include "runtime/package/order/order.h"
#include "runtime/package/text/number_text.h"
#include "runtime/package/text/regex.h"
#include "runtime/package/text/unicode.h"
#include "runtime/package/verify/verify.h"

namespace oclc::package {
namespace {

using plan::DType;

enum class Change : std::int64_t { none, lower, upper };

void store(HostValue& value, std::size_t i, std::int64_t number) {
  std::memcpy(value.data.data() + i * sizeof number, &number, sizeof number);
}

std::string no_problem(const HostSettings&) { return {}; }

void number_to_string(const HostSettings&, std::span<const HostValue> in, std::span<HostValue> out) {
  const std::uint64_t size = dtype_bytes(in[0].dtype);
  require(out[0].elements() == in[0].elements(), "wanted a result of the operand's shape");
  for (std::size_t i = 0; i < out[0].texts.size(); ++i)
    out[0].texts[i] = number_text(in[0].dtype, in[0].data.data() + i * size);
}

void string_to_number(const HostSettings&, std::span<const HostValue> in, std::span<HostValue> out) {
  const std::uint64_t size = dtype_bytes(out[0].dtype);
  require(out[0].elements() == in[0].elements(), "wanted a result of the operand's shape");
  for (std::size_t i = 0; i < in[0].texts.size(); ++i) {
    if (!parse_number(out[0].dtype, in[0].texts[i], out[0].data.data() + i * size))
      throw HostOpError("wanted a number as element " + std::to_string(i) + ", found \"" + in[0].texts[i].substr(0, 80) + "\"");
  }
}

std::string normalize_problem(const HostSettings& s) {
  if (s.integers[0] != 0 && s.integers[0] != 1) return "case_sensitive is 0 or 1";
  if (s.integers[1] < 0 || s.integers[1] > 2) return "change is 0, 1 or 2";
  return {};
}

void string_normalize(const HostSettings& s, std::span<const HostValue> in, std::span<HostValue> out) {
  const bool sensitive = s.integers[0] != 0;
  const auto key = [&](const std::string& text) { return sensitive ? text : lower(text); };
  std::set<std::string> stop;
  for (const std::string& word : s.texts) stop.insert(key(word));
  std::vector<std::string> kept;
  for (const std::string& text : in[0].texts) {
    if (stop.count(key(text))) continue;
    const auto change = static_cast<Change>(s.integers[1]);
    kept.push_back(change == Change::none ? text : change == Change::lower ? lower(text) : upper(text));
  }
  if (kept.empty()) kept.emplace_back();
  require(kept.size() <= out[0].texts.size() && out[1].elements() == 1, "wanted room for all texts and their number");
  store(out[1], 0, static_cast<std::int64_t>(kept.size()));
  std::move(kept.begin(), kept.end(), out[0].texts.begin());
}

// Position in an operand that is broadcast to `shape`.
std::size_t broadcast_position(std::size_t at, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& own) {
  std::size_t result = 0, stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[i]);
    if (i + own.size() >= shape.size()) {
      const auto mine = static_cast<std::size_t>(own[i + own.size() - shape.size()]);
      if (mine != 1) result += at % size * stride;
      stride *= mine;
    }
    at /= size;
  }
  return result;
}

void check_broadcast(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& own) {
  require(own.size() <= shape.size(), "wanted operands that broadcast to the result's shape");
  for (std::size_t i = 0; i < own.size(); ++i)
    require(own[i] == 1 || own[i] == shape[shape.size() - own.size() + i],
            "wanted operands that broadcast to the result's shape");
}

void string_concat(const HostSettings&, std::span<const HostValue> in, std::span<HostValue> out) {
  for (const HostValue& operand : in) check_broadcast(out[0].shape, operand.shape);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < out[0].texts.size(); ++i) {
    const std::string& first = in[0].texts[broadcast_position(i, out[0].shape, in[0].shape)];
    const std::string& second = in[1].texts[broadcast_position(i, out[0].shape, in[1].shape)];
    if ((bytes += first.size() + second.size()) > kMaxTextBytes)
      throw HostOpError("wanted a result of at most " + std::to_string(kMaxTextBytes) + " bytes");
    out[0].texts[i] = first + second;
  }
}

std::string split_problem(const HostSettings& s) {
  if (s.texts.size() != 1) return "there is one delimiter";
  return s.integers[0] < -1 ? "most is -1 or more" : "";
}

// As Python's str.split: at runs of blanks without a delimiter, else at each one; the rest stays whole after `most` cuts (-1:
// no limit).
std::vector<std::string> split(std::string_view text, std::string_view delimiter, std::int64_t most) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  std::vector<std::string> parts;
  const auto may_cut = [&] { return most < 0 || static_cast<std::int64_t>(parts.size()) < most; };
  if (!delimiter.empty()) {
    for (std::size_t end; may_cut() && (end = text.find(delimiter)) != text.npos; text.remove_prefix(end + delimiter.size()))
      parts.emplace_back(text.substr(0, end));
    parts.emplace_back(text);
    return parts;
  }
  for (;;) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == text.npos) return parts;
    text.remove_prefix(begin);
    const std::size_t end = text.find_first_of(kBlanks);
    if (end == text.npos || !may_cut()) break;
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  parts.emplace_back(text.substr(0, text.find_last_not_of(kBlanks) + 1));
  return parts;
}

void string_split(const HostSettings& s, std::span<const HostValue> in, std::span<HostValue> out) {
  require(!out[0].shape.empty() && out[1].elements() == in[0].elements() && out[2].elements() == 1,
          "wanted room for the parts, their numbers and the largest of these");
  const auto room = static_cast<std::size_t>(out[0].shape.back());
  require(out[0].elements() == in[0].elements() * room, "wanted room for the parts of each text");
  std::size_t largest = 0;
  for (std::size_t i = 0; i < in[0].texts.size(); ++i) {
    std::vector<std::string> parts = split(in[0].texts[i], s.texts[0], s.integers[0]);
    if (parts.size() > room)
      throw HostOpError("wanted at most " + std::to_string(room) + " parts of element " + std::to_string(i) + ", found " +
                        std::to_string(parts.size()));
    store(out[1], i, static_cast<std::int64_t>(parts.size()));
    largest = std::max(largest, parts.size());
    std::move(parts.begin(), parts.end(), out[0].texts.begin() + static_cast<std::ptrdiff_t>(i * room));
  }
  store(out[2], 0, static_cast<std::int64_t>(largest));
}

std::string regex_problem(const HostSettings& s) {
  if (s.texts.size() != 1) return "there is one pattern";
  try {
    const Regex checked(s.texts[0]);
    return {};
  } catch (const RegexError& error) {
    return error.what();
  }
}

void regex_full_match(const HostSettings& s, std::span<const HostValue> in, std::span<HostValue> out) {
  const Regex pattern(s.texts[0]);
  require(out[0].elements() == in[0].elements(), "wanted a result of the operand's shape");
  for (std::size_t i = 0; i < in[0].texts.size(); ++i) out[0].data[i] = std::byte{pattern.matches(in[0].texts[i])};
}

constexpr HostOp kOps[] = {
    {"number_to_string", "each number as numpy writes it", "n", "s", "", "", no_problem, number_to_string},
    {"string_to_number", "the number that each text stands for", "s", "n", "", "", no_problem, string_to_number},
    {"string_normalize",
     "the texts that are no stop words, or else one empty text, and their number; change: 1 to lower case, 2 to upper case",
     "s", "si", "case_sensitive change", "stopwords", normalize_problem, string_normalize},
    {"string_concat", "a + b with numpy broadcasting", "ss", "s", "", "", no_problem, string_concat},
    {"string_split", "parts between delimiters (none: blanks), at most `most` cuts; numbers of parts; the largest number", "s",
     "sii", "most", "delimiter", split_problem, string_split},
    {"regex_full_match", "whether the pattern (syntax of RE2) matches each whole text", "s", "b", "", "pattern", regex_problem,
     regex_full_match},
    {"top_places",
     "places of the first elements of each row x[.., n] in order of size, equal ones in order of place; NaN is the largest",
     "n", "i", "largest", "", flag_problem, top_places},
    {"unique_rows",
     "of rows x[n, m] the different ones: the first row of each, the place of each row's among them, how often each comes, and "
     "their number; sorted: in order of size, else in the order in which they come",
     "a", "iiii", "sorted", "", flag_problem, unique_rows},
    {"positions", "the places of what is true, and their number", "b", "ii", "", "", no_problem, positions},
    {"scatter_rows",
     "data[n, m] after one update of a row after another: rows[u] (none: below 0), updates[u, m]; reduction: 0 none, 1 add, "
     "2 mul, 3 max, 4 min",
     "nin", "n", "reduction", "", reduction_problem, scatter_rows},
    {"choose_boxes",
     "non-maximum suppression of boxes[batch, count, 4] by scores[batch, classes, count]: at most so many of a class, "
     "threshold "
     "of the overlap, threshold of the score; image, class and box of each that is chosen, and their number",
     "nninn", "ii", "center_point_box", "", flag_problem, choose_boxes},
    {"image_size", "height and width of the image file of these bytes", "n", "i", "", "", no_problem, image_size},
    {"decode_image", "pixels of the image file of these bytes; pixel_format: 0 RGB, 1 BGR, 2 grey", "n", "n", "pixel_format",
     "", colours_problem, decode_image},
};

}  // namespace

std::size_t HostValue::elements() const {
  std::size_t n = 1;
  for (const std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return n;
}

void require(bool holds, const char* wanted) {
  if (!holds) throw HostOpError(wanted);
}

std::string flag_problem(const HostSettings& settings) {
  return settings.integers[0] == 0 || settings.integers[0] == 1 ? "" : "its setting is 0 or 1";
}

std::span<const HostOp> host_ops() { return kOps; }

const HostOp* find_host_op(std::string_view name) {
  const auto* at = std::find_if(std::begin(kOps), std::end(kOps), [&](const HostOp& op) { return op.name == name; });
  return at == std::end(kOps) ? nullptr : at;
}

bool accepts(char kind, DType dtype) {
  switch (kind) {
    case 's':
      return dtype == DType::string_;
    case 'i':
      return dtype == DType::i64;
    case 'b':
      return dtype == DType::bool_;
    case 'a':
      return true;
    default:
      return dtype != DType::string_;
  }
}

std::size_t count_words(std::string_view names) {
  return names.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(names.begin(), names.end(), ' '));
}

std::string problem_of(const HostOp& op, const HostSettings& settings) {
  if (settings.integers.size() != count_words(op.integers))
    return "it has " + std::to_string(count_words(op.integers)) + " integer settings, found " +
           std::to_string(settings.integers.size());
  if (op.texts.empty() && !settings.texts.empty()) return "it has no texts as settings";
  return op.problem(settings);
}

}  // namespace oclc::package
