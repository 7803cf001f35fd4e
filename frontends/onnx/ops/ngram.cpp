// TfIdfVectorizer: how often each n-gram of a pool occurs.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// The n-grams of one length in the pool: items [count, length], which begin at `begin` of the pool.
struct Grams {
  std::int64_t length = 0, count = 0, begin = 0;
};

HostTensor pool_items(OpContext& c, bool texts) {
  if (!texts) return HostTensor::from_ints(c.integers("pool_int64s"));
  const std::vector<std::string> pool = c.texts("pool_strings");
  return HostTensor::from_texts(pool, {static_cast<std::int64_t>(pool.size())});
}

std::vector<Grams> read_pool(OpContext& c, std::int64_t size) {
  const Ints starts = c.integers("ngram_counts");
  std::vector<Grams> out;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    const std::int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0) {
      c.fail(fmt::format("ngram_counts that cut a pool of {} into n-grams of length 1, 2, ..", size),
             fmt::format("{}", fmt::join(starts, ", ")));
    }
    out.push_back({length, (end - begin) / length, begin});
  }
  return out;
}

// Occurrences of each n-gram in x[N, C], whose items stand `step` apart: [N, count].
Value* occurrences(OpContext& c, Value* x, const HostTensor& pool, const Grams& grams, std::int64_t step) {
  const Expr batch = x->type.shape[0], windows = x->type.shape[1] - (grams.length - 1) * step;
  Value* found = nullptr;
  for (std::int64_t k = 0; k < grams.length; ++k) {
    HostTensor wanted(pool.dtype(), {1, 1, grams.count});
    for (std::int64_t g = 0; g < grams.count; ++g) wanted.set_int(g, pool.int_at(grams.begin + g * grams.length + k));
    Value* item = c.b.reshape(c.b.slice_axis(x, 1, Expr(k * step), windows), {batch, windows, Expr(1)});
    Value* same = c.b.call("equal", {item, c.b.constant(std::move(wanted))});
    found = found ? c.b.call("and", {found, same}) : same;
  }
  return c.b.reduce("reduce_sum", c.b.cast(found, DType::f32), {1}, false);
}

Outputs tf_idf(OpContext& c) {
  const std::string mode = c.text("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") c.fail("mode TF, IDF or TFIDF", printable(mode));
  const std::int64_t shortest = c.integer("min_gram_length"), longest = c.integer("max_gram_length"),
                     skips = c.integer("max_skip_count");
  if (shortest < 1 || longest < shortest || skips < 0)
    c.fail("lengths of n-grams from 1 on, and skips from 0 on", fmt::format("{} to {}, {}", shortest, longest, skips));
  Value* x = c.input(0);
  const bool batched = x->type.rank() == 2;
  const bool texts = x->type.dtype == DType::string;
  if ((!texts && !is_integer(x->type.dtype)) || (x->type.rank() != 1 && !batched))
    c.fail("integers or strings [C] or [N, C]", x->type.text());
  if (c.has(texts ? "pool_int64s" : "pool_strings"))
    c.fail(texts ? "a pool of strings, as the input's" : "a pool of integers, as the input's", texts ? "integers" : "strings");
  if (!texts) x = c.b.cast(x, DType::i64);
  if (!batched) x = c.b.reshape(x, {Expr(1), x->type.shape[0]});
  const Expr& length = x->type.shape[1];
  if (!length.is_constant()) c.unsupported("a length known when compiling", x->type.text(), "give it with --dim or --shape");
  const HostTensor items = pool_items(c, texts);
  const std::vector<Grams> pool = read_pool(c, items.elements());
  std::int64_t count = 0;
  for (const Grams& grams : pool) count += grams.count;
  const Ints places = c.integers("ngram_indexes");
  if (count == 0 || static_cast<std::int64_t>(places.size()) != count)
    c.fail(fmt::format("{} ngram_indexes, as the pool has n-grams", count), std::to_string(places.size()));
  const std::vector<double> weights = c.reals("weights", std::vector<double>(places.size(), 1));
  if (weights.size() != places.size()) c.fail(fmt::format("{} weights", count), std::to_string(weights.size()));
  constexpr std::int64_t kMostPlaces = 1 << 24;
  const auto [least, most] = std::minmax_element(places.begin(), places.end());
  if (*least < 0 || *most >= kMostPlaces)
    c.fail(fmt::format("ngram_indexes from 0 to {}", kMostPlaces - 1), fmt::format("{} to {}", *least, *most));

  std::vector<Value*> columns;
  for (const Grams& grams : pool) {
    if (grams.count == 0) continue;
    Value* sum = nullptr;
    const bool counts = grams.length >= shortest && grams.length <= longest;
    for (std::int64_t skip = 0; counts && skip <= (grams.length == 1 ? 0 : skips); ++skip) {
      if ((grams.length - 1) * (skip + 1) >= length.value()) break;
      Value* part = occurrences(c, x, items, grams, skip + 1);
      sum = sum ? c.b.add(sum, part) : part;
    }
    columns.push_back(sum ? sum : c.b.expand(c.b.scalar(DType::f32, 0), {x->type.shape[0], Expr(grams.count)}));
  }
  Value* found = columns.size() == 1 ? columns[0] : c.b.concat(columns, 1);
  if (mode == "IDF") found = c.b.min(found, c.b.scalar(DType::f32, 1));
  if (mode != "TF") found = c.b.mul(found, c.b.floats(std::vector<float>(weights.begin(), weights.end()), {1, count}));
  // Column `places[g]` of the result is that of n-gram g; those that no n-gram names are zero.
  Ints from(static_cast<std::size_t>(*most) + 1, count);
  for (std::size_t g = 0; g < places.size(); ++g) {
    std::int64_t& at = from[static_cast<std::size_t>(places[g])];
    if (at != count) c.unsupported("different ngram_indexes", fmt::format("{} twice", places[g]));
    at = static_cast<std::int64_t>(g);
  }
  found = c.b.pad(found, {Expr(0), Expr(0)}, {Expr(0), Expr(1)});
  Value* out = c.b.gather(found, c.b.ints(from), 1);
  return {batched ? out : c.b.reshape(out, {Expr(*most + 1)})};
}

constexpr OpRow kNgramRows[] = {
    {"TfIdfVectorizer", 9, 1, 1, tf_idf},
};

}  // namespace

std::span<const OpRow> ngram_rows() { return kNgramRows; }

}  // namespace oclc::onnx
