// Operators on strings, and which others move or compare them.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// Of the parts of one string, where the model does not limit their number.
constexpr std::int64_t kMostParts = 256;

std::vector<std::string> checked(OpContext& c, std::vector<std::string> texts) {
  for (const std::string& text : texts) {
    if (text.find('\0') != std::string::npos) c.unsupported("texts without NUL", "one with a NUL");
  }
  return texts;
}

Value* strings(OpContext& c, std::size_t i) {
  if (c.input(i)->type.dtype != DType::string) c.fail(fmt::format("strings as input {}", i), c.input(i)->type.text());
  return c.input(i);
}

// What is left is counted by the host and becomes a dimension.
Outputs normalizer(OpContext& c) {
  Value* x = strings(c, 0);
  c.ignore({"locale"});  // letters change their case by Unicode's tables
  const bool flat = x->type.rank() == 1;
  if (!flat && !(x->type.rank() == 2 && x->type.shape[0] == Expr(1))) c.fail("strings [C] or [1, C]", x->type.text());
  const std::string change = c.text("case_change_action", "NONE");
  const std::string_view known[] = {"NONE", "LOWER", "UPPER"};
  const auto* action = std::find(std::begin(known), std::end(known), change);
  if (action == std::end(known)) c.fail("case_change_action NONE, LOWER or UPPER", printable(change));
  const std::vector<std::string> stop = checked(c, c.texts("stopwords", std::vector<std::string>()));
  const Node* node = c.b.node("string_normalize", {x},
                              {{"case_sensitive", std::int64_t{c.flag("is_case_sensitive") ? 1 : 0}},
                               {"change", static_cast<std::int64_t>(action - std::begin(known))},
                               {"stopwords", stop}});
  Value* kept = node->output(0);
  if (!stop.empty()) {
    const Expr count = c.b.read_dims(node->output(1), "kept", {kept->type.shape[0]}).at(0);
    kept = c.b.slice_axis(kept, 0, Expr(0), count);
  }
  return {flat ? kept : c.b.reshape(kept, {Expr(1), kept->type.shape[0]})};
}

Outputs concat_strings(OpContext& c) { return {c.b.call("string_concat", {strings(c, 0), strings(c, 1)})}; }

// The parts' last dimension is the largest number of parts of any string.
Outputs split_string(OpContext& c) {
  Value* x = strings(c, 0);
  const bool limited = c.has("maxsplit") && c.integer("maxsplit") >= 0;
  const std::int64_t most = limited ? c.integer("maxsplit") : -1;
  const std::int64_t room = limited ? std::min(most, kMostParts - 1) + 1 : kMostParts;
  const Node* node =
      c.b.node("string_split", {x}, {{"most", most}, {"delimiter", checked(c, {c.text("delimiter", "")})}, {"parts", room}});
  const Expr count = c.b.read_dims(node->output(2), "parts", {Expr(room)}).at(0);
  const auto last = static_cast<std::int64_t>(x->type.rank());
  return {c.b.slice_axis(node->output(0), last, Expr(0), count), node->output(1)};
}

Outputs full_match(OpContext& c) {
  return {c.b.call("regex_full_match", {strings(c, 0)}, {{"pattern", checked(c, {c.text("pattern")})}})};
}

constexpr OpRow kStringsRows[] = {
    {"RegexFullMatch", 20, 1, 1, full_match},
    {"StringConcat", 20, 2, 2, concat_strings},
    {"StringNormalizer", 10, 1, 1, normalizer},
    {"StringSplit", 20, 1, 1, split_string},
};

// Beside those above.
constexpr std::string_view kMovers[] = {"ai.onnx.ml.ArrayFeatureExtractor",
                                        "ai.onnx.ml.CastMap",
                                        "ai.onnx.ml.CategoryMapper",
                                        "ai.onnx.ml.DictVectorizer",
                                        "ai.onnx.ml.LabelEncoder",
                                        "ai.onnx.ml.OneHotEncoder",
                                        "Cast",
                                        "CastLike",
                                        "Compress",
                                        "Concat",
                                        "ConcatFromSequence",
                                        "ConstantOfShape",
                                        "Equal",
                                        "Expand",
                                        "Flatten",
                                        "Gather",
                                        "GatherElements",
                                        "GatherND",
                                        "Identity",
                                        "Optional",
                                        "OptionalGetElement",
                                        "OptionalHasElement",
                                        "Reshape",
                                        "SequenceAt",
                                        "SequenceConstruct",
                                        "SequenceErase",
                                        "SequenceInsert",
                                        "SequenceLength",
                                        "Shape",
                                        "Size",
                                        "Slice",
                                        "Split",
                                        "SplitToSequence",
                                        "Squeeze",
                                        "TfIdfVectorizer",
                                        "Tile",
                                        "Transpose",
                                        "Unsqueeze",
                                        "Where"};

}  // namespace

std::span<const OpRow> string_rows() { return kStringsRows; }

bool takes_strings(std::string_view op) {
  return std::find(std::begin(kMovers), std::end(kMovers), op) != std::end(kMovers) ||
         std::any_of(std::begin(kStringsRows), std::end(kStringsRows), [&](const OpRow& row) { return row.op == op; });
}

}  // namespace oclc::onnx
