// Operators on a map, which is two vectors: its keys, and the value of each.
#include <fmt/format.h>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/ml/ml.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

struct Entries {
  Value *keys = nullptr, *values = nullptr;
};

Entries entries_of(OpContext& c) {
  if (!c.is_bundle(c.input(0)) || c.sequence(0).size() != 2)
    c.fail("a map", c.is_bundle(c.input(0)) ? "a sequence" : "a tensor");
  return {c.sequence(0)[0], c.sequence(0)[1]};
}

// What stands where a map has no key: 0, or an empty text.
Value* nothing_of(OpContext& c, DType dtype) {
  const std::vector<std::string> empty(1);
  if (dtype == DType::string) return c.b.constant(HostTensor::from_texts(empty, {1}));
  return c.b.reshape(c.b.scalar(dtype, 0), {Expr(1)});
}

Outputs as_row(OpContext& c, Value* list) { return {c.b.reshape(list, {Expr(1), list->type.elements()})}; }

Outputs dict_vectorizer(OpContext& c) {
  const Entries map = entries_of(c);
  const bool texts = map.keys->type.dtype == DType::string;
  Value* words = nullptr;
  if (texts) {
    const std::vector<std::string> list = c.texts("string_vocabulary");
    words = c.b.constant(HostTensor::from_texts(list, {static_cast<std::int64_t>(list.size())}));
  } else {
    words = c.b.ints(c.integers("int64_vocabulary"));
  }
  if (words->type.elements() == Expr(0)) c.fail("a vocabulary", "an empty one");
  return as_row(c, looked_up(c, words, map.keys, map.values, nothing_of(c, map.values->type.dtype)));
}

Outputs cast_map(OpContext& c) {
  const Entries map = entries_of(c);
  const std::string to = c.text("cast_to", "TO_FLOAT"), form = c.text("map_form", "DENSE");
  const std::int64_t most = c.integer("max_map", 1);
  if (to != "TO_FLOAT" && to != "TO_STRING" && to != "TO_INT64")
    c.fail("cast_to TO_FLOAT, TO_STRING or TO_INT64", printable(to));
  if (form != "DENSE" && form != "SPARSE") c.fail("map_form DENSE or SPARSE", printable(form));
  if (map.keys->type.dtype != DType::i64) c.fail("a map whose keys are integers", map.keys->type.text());
  Value* values = c.b.cast(map.values, to == "TO_FLOAT" ? DType::f32 : to == "TO_STRING" ? DType::string : DType::i64);
  if (form == "SPARSE") {
    if (most < 1) c.fail("max_map of 1 or more", std::to_string(most));
    Value* places = c.b.iota({Expr(most)}, 0, DType::i64);
    return as_row(c, looked_up(c, places, map.keys, values, nothing_of(c, values->type.dtype)));
  }
  // In the order of the keys.
  Value* order =
      c.b.call("top_places", {map.keys}, {{"largest", std::int64_t{0}}, {"k", std::vector<Expr>{map.keys->type.elements()}}});
  return as_row(c, c.b.gather(values, order, 0));
}

constexpr OpRow kMapRows[] = {
    {"ai.onnx.ml.CastMap", 1, 1, 1, cast_map, {}, true},
    {"ai.onnx.ml.DictVectorizer", 1, 1, 1, dict_vectorizer, {}, true},
};

}  // namespace

std::span<const OpRow> map_rows() { return kMapRows; }

}  // namespace oclc::onnx
