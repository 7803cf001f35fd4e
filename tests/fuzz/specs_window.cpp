// Convolutions, pooling, matrix products, recurrent networks, attention.
#include <algorithm>

#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

// A sliding window over `axes` axes that fits `sizes`, grown where it must.
struct Windows {
  Dims sizes, kernel, strides, dilations, pads;
  std::string automatic;
};

Windows windows(Draft& d, std::size_t axes, bool dilated, bool padded = true) {
  Windows w;
  if (padded && d.r.chance(0.2)) w.automatic = d.r.pick({"SAME_UPPER", "SAME_LOWER", "VALID"});
  w.pads.assign(2 * axes, 0);
  const bool half = w.automatic.empty() && padded && d.r.chance(0.6);
  const bool apart = dilated && d.r.chance(0.3);
  for (std::size_t i = 0; i < axes; ++i) {
    w.kernel.push_back(d.r.integer(1, 4));
    w.strides.push_back(d.r.chance(0.5) ? 1 : d.r.integer(1, 3));
    w.dilations.push_back(apart ? d.r.integer(1, 3) : 1);
    const std::int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    w.sizes.push_back(reach + d.r.integer(0, axes > 2 ? 3 : 8));
    if (!half) continue;
    // Every window touches the tensor.
    w.pads[i] = d.r.integer(0, std::min<std::int64_t>(w.kernel[i] - 1, 2));
    w.pads[i + axes] = d.r.integer(0, std::min<std::int64_t>(w.kernel[i] - 1, 2));
  }
  return w;
}

void set_windows(Draft& d, const Windows& w, bool dilated, bool kernel) {
  if (kernel) d.set("kernel_shape", w.kernel);
  if (std::any_of(w.strides.begin(), w.strides.end(), [](auto s) { return s != 1; })) d.set("strides", w.strides);
  if (dilated && std::any_of(w.dilations.begin(), w.dilations.end(), [](auto s) { return s != 1; }))
    d.set("dilations", w.dilations);
  if (!w.automatic.empty())
    d.set("auto_pad", w.automatic);
  else if (std::any_of(w.pads.begin(), w.pads.end(), [](auto s) { return s != 0; }))
    d.set("pads", w.pads);
}

Dims joined(Dims head, const Dims& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

void convolution(Draft& d) {
  const std::size_t axes = static_cast<std::size_t>(d.r.pick({1, 2, 2, 2, 3}));
  const Windows w = windows(d, axes, true);
  const std::int64_t group = d.r.chance(0.3) ? d.r.integer(2, 4) : 1;
  const std::int64_t each = d.r.chance(0.1) ? 16 : d.r.integer(1, 4), features = d.r.chance(0.1) ? 16 : d.r.integer(1, 5);
  const DType dtype = d.floats();
  d.effect = Effect::ring;
  d.tolerance = 8;
  d.scale = 8;
  const bool transposed = d.node.op_type() == "ConvTranspose";
  d.input(dtype, joined({d.r.integer(1, 3), each * group}, w.sizes));
  d.input(dtype, joined(transposed ? Dims{each * group, features} : Dims{features * group, each}, w.kernel));
  if (d.r.chance(0.6)) d.input(dtype, {features * group});
  if (group != 1) d.set("group", group);
  if (!transposed) {
    set_windows(d, w, true, d.r.chance(0.5));
    return;
  }
  Windows own = w;
  for (std::size_t i = 0; i < 2 * axes; ++i)
    own.pads[i] = std::min(own.pads[i], (own.kernel[i % axes] - 1) * own.dilations[i % axes] / 2);
  if (own.automatic != "VALID") own.automatic.clear();
  set_windows(d, own, true, d.r.chance(0.5));
  if (d.r.chance(0.3)) {
    Dims more(axes);
    for (std::size_t i = 0; i < axes; ++i) more[i] = d.r.integer(0, std::max(own.strides[i], own.dilations[i]) - 1);
    d.set("output_padding", more);
  }
}

void pool(Draft& d) {
  const std::string& op = d.node.op_type();
  const bool max = op == "MaxPool", average = op == "AveragePool";
  const std::size_t axes = static_cast<std::size_t>(d.r.pick({1, 2, 2, 2, 3}));
  const bool dilated = max ? d.opset >= 10 : average ? d.opset >= 19 : d.opset >= 18;
  const Windows w = windows(d, axes, dilated);
  d.effect = max ? Effect::moves : Effect::smooth;
  DType dtype = d.floats();
  if (max && d.opset >= 12 && d.r.chance(0.15)) dtype = d.type({DType::i8, DType::u8});
  d.tolerance = 4;
  d.scale = average ? 4 : 0;
  const bool powers = op == "LpPool";
  d.input(dtype, joined({d.r.integer(1, 3), d.r.integer(1, 4)}, w.sizes), powers ? Range{0.25, 2, true} : Range{});
  set_windows(d, w, dilated, true);
  const bool rounded = w.automatic.empty() && (powers ? d.opset >= 18 : d.opset >= 10) && d.r.chance(0.3);
  if (rounded) d.set("ceil_mode", 1);
  if (average && d.opset >= 7 && d.r.chance(0.4)) d.set("count_include_pad", d.r.chance(0.5));
  if (powers && d.r.chance(0.6)) d.set("p", d.r.integer(1, 3));
  if (max && d.opset >= 8 && !is_integer(dtype) && d.r.chance(0.4)) {
    d.effect = Effect::decides;
    d.outputs = 2;
    if (d.r.chance(0.3)) d.set("storage_order", 1);
  }
}

void global_pool(Draft& d) {
  const std::string& op = d.node.op_type();
  if (op == "GlobalMaxPool") d.effect = Effect::moves;
  Dims shape = d.shape(3, 5);
  for (auto& dim : shape) dim = std::max<std::int64_t>(dim, 1);
  d.scale = 4;
  d.tolerance = 4;
  d.input(d.floats(), shape, op == "GlobalLpPool" ? Range{0.25, 2, true} : Range{});
  if (op == "GlobalLpPool" && d.r.chance(0.6)) d.set("p", d.r.integer(1, 3));
}

void deformed(Draft& d) {
  const Windows w = windows(d, 2, true);
  const std::int64_t offset_group = d.r.integer(1, 2), group = d.r.integer(1, 2), channels = 2 * d.r.integer(1, 2),
                     features = group * d.r.integer(1, 3), batch = d.r.integer(1, 2), taps = w.kernel[0] * w.kernel[1];
  Windows own = w;
  own.automatic.clear();
  Dims out;
  for (std::size_t i = 0; i < 2; ++i)
    out.push_back((w.sizes[i] + own.pads[i] + own.pads[i + 2] - (w.kernel[i] - 1) * w.dilations[i] - 1) / w.strides[i] + 1);
  d.tolerance = 32;
  d.scale = 8;
  d.input(DType::f32, joined({batch, channels}, w.sizes));
  d.input(DType::f32, joined({features, channels / group}, w.kernel));
  d.input(DType::f32, joined({batch, offset_group * taps * 2}, out));
  const bool bias = d.r.chance(0.5), mask = d.r.chance(0.5);
  bias ? (void)d.input(DType::f32, {features}) : d.none();
  if (mask) d.input(DType::f32, joined({batch, offset_group * taps}, out));
  if (group != 1) d.set("group", group);
  if (offset_group != 1) d.set("offset_group", offset_group);
  set_windows(d, own, true, d.r.chance(0.5));
}

void max_unpool(Draft& d) {
  const Dims shape{d.r.integer(1, 2), d.r.integer(1, 3), d.r.integer(1, 4), d.r.integer(1, 4)};
  d.effect = Effect::moves;
  d.input(DType::f32, shape, {-2, 2, false, d.r.chance(0.3)});
  HostTensor places(DType::i64, shape);
  for (std::int64_t i = 0; i < places.elements(); ++i) places.set_int(i, 4 * i + d.r.integer(0, 3));  // each its own
  d.known(std::move(places));
  d.operands.back().known = false;
  d.set("kernel_shape", Dims{2, 2});
  d.set("strides", Dims{2, 2});
}

void matmul(Draft& d) {
  const DType dtype = d.r.chance(0.85) ? d.floats() : d.type({DType::i32, DType::i64, DType::u32, DType::u64});
  d.effect = Effect::ring;
  d.tolerance = 8;
  d.scale = 16;
  const std::int64_t inner = d.r.chance(0.1) ? d.r.integer(20, 70) : d.size();
  Dims lead = d.shape(0, 2);
  Dims a = d.broadcast(lead), b = a == lead ? d.broadcast(lead) : lead;
  const bool row = a.empty() && d.r.chance(0.2), column = b.empty() && !row && d.r.chance(0.2);
  if (!row) a.push_back(d.size());
  a.push_back(inner);
  b.push_back(inner);
  if (!column) b.push_back(d.size());
  d.input(dtype, a);
  d.input(dtype, b);
}

void gemm(Draft& d) {
  const DType dtype = d.floats();
  d.effect = Effect::ring;
  d.tolerance = 8;
  d.scale = 16;
  const std::int64_t m = d.size(), n = d.size(), k = std::max<std::int64_t>(d.size(), 1);
  const bool ta = d.r.chance(0.4), tb = d.r.chance(0.4);
  d.input(dtype, ta ? Dims{k, m} : Dims{m, k});
  d.input(dtype, tb ? Dims{n, k} : Dims{k, n});
  if (d.opset < 11 || d.r.chance(0.7)) d.input(dtype, d.broadcast({m, n}));
  if (ta) d.set("transA", 1);
  if (tb) d.set("transB", 1);
  if (d.r.chance(0.4)) d.set("alpha", d.r.pick({0.5, 2.0, -1.0}));
  if (d.r.chance(0.4)) d.set("beta", d.r.pick({0.5, 2.0, 0.0}));
}

void einsum(Draft& d) {
  const DType dtype = d.r.chance(0.8) ? d.floats() : DType::i32;
  d.effect = Effect::ring;
  d.tolerance = 8;
  d.scale = 16;
  const std::int64_t i = d.r.integer(1, 5), j = d.r.integer(1, 5), k = d.r.integer(1, 5), b = d.r.integer(1, 3);
  struct Form {
    const char* text;
    std::vector<Dims> shapes;
  };
  const std::vector<Form> forms{{"ij->ji", {{i, j}}},
                                {"ii->i", {{i, i}}},
                                {"ij->i", {{i, j}}},
                                {"ij,jk->ik", {{i, j}, {j, k}}},
                                {"bij, bjk -> bik", {{b, i, j}, {b, j, k}}},
                                {"...ij,...jk->...ik", {{b, i, j}, {j, k}}},
                                {"i,j->ij", {{i}, {j}}},
                                {"ij,ij->", {{i, j}, {i, j}}},
                                {"ij,jk,kb->ib", {{i, j}, {j, k}, {k, b}}},
                                {"bi,bj", {{b, i}, {b, j}}},
                                {"i...->...", {{i, j, k}}}};
  const Form& form = forms[static_cast<std::size_t>(d.axis(forms.size()))];
  for (const Dims& shape : form.shapes) d.input(dtype, shape);
  d.set("equation", std::string(form.text));
}

void determinant(Draft& d) {
  const std::int64_t n = d.r.integer(1, 4);
  Dims shape = d.shape(0, 2);
  d.tolerance = 64;
  d.scale = 16;
  d.input(d.type({DType::f32, DType::f64}), joined(shape, {n, n}));
}

void recurrent(Draft& d) {
  const std::string& op = d.node.op_type();
  const std::int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const std::int64_t steps = d.r.integer(1, 5), batch = d.r.integer(1, 3), in = d.r.integer(1, 4), hidden = d.r.integer(1, 5);
  const std::string direction = d.r.pick({"forward", "reverse", "bidirectional"});
  const std::int64_t n = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = d.opset >= 14 && d.r.chance(0.3);
  d.tolerance = 8;
  d.input(DType::f32, batch_first ? Dims{batch, steps, in} : Dims{steps, batch, in});
  d.input(DType::f32, {n, gates * hidden, in}, {-1, 1});
  d.input(DType::f32, {n, gates * hidden, hidden}, {-1, 1});
  d.r.chance(0.6) ? (void)d.input(DType::f32, {n, 2 * gates * hidden}) : d.none();
  d.r.chance(0.3) ? (void)d.input(DType::i32, {batch}, {1, static_cast<double>(steps), true}) : d.none();
  const Dims state = batch_first ? Dims{batch, n, hidden} : Dims{n, batch, hidden};
  d.r.chance(0.4) ? (void)d.input(DType::f32, state) : d.none();
  if (op == "LSTM") {
    d.r.chance(0.4) ? (void)d.input(DType::f32, state) : d.none();
    if (d.r.chance(0.3)) d.input(DType::f32, {n, 3 * hidden});
  }
  d.set("hidden_size", hidden);
  if (direction != "forward" || d.r.chance(0.3)) d.set("direction", direction);
  if (batch_first) d.set("layout", 1);
  if (op == "GRU" && d.r.chance(0.5)) d.set("linear_before_reset", 1);
  if (op == "LSTM" && d.r.chance(0.2)) d.set("input_forget", 1);
  d.outputs = static_cast<int>(d.r.integer(1, op == "LSTM" ? 3 : 2));
  d.symbolic = false;
}

void attention(Draft& d) {
  const std::int64_t batch = d.r.integer(1, 2), groups = d.r.integer(1, 2), heads = groups * d.r.integer(1, 2),
                     steps = d.r.integer(1, 5), keys = d.r.integer(1, 6), width = d.r.integer(1, 4), out = d.r.integer(1, 4);
  const bool flat = d.r.chance(0.4);
  d.tolerance = 8;
  d.input(DType::f32, flat ? Dims{batch, steps, heads * width} : Dims{batch, heads, steps, width});
  d.input(DType::f32, flat ? Dims{batch, keys, groups * width} : Dims{batch, groups, keys, width});
  d.input(DType::f32, flat ? Dims{batch, keys, groups * out} : Dims{batch, groups, keys, out});
  const bool causal = d.r.chance(0.3);
  if (!causal && d.r.chance(0.5)) d.input(DType::f32, d.r.chance(0.5) ? Dims{steps, keys} : Dims{batch, heads, steps, keys});
  if (flat) {
    d.set("q_num_heads", heads);
    d.set("kv_num_heads", groups);
  }
  if (causal) d.set("is_causal", 1);
  if (d.r.chance(0.3)) d.set("scale", d.r.real(0.2, 1));
  if (d.r.chance(0.3)) d.set("softcap", d.r.real(1, 4));
}

void rotary(Draft& d) {
  const std::int64_t batch = d.r.integer(1, 2), heads = d.r.integer(1, 3), steps = d.r.integer(1, 5), half = d.r.integer(1, 3);
  const std::int64_t turned = 2 * half, width = turned + (d.r.chance(0.4) ? 2 : 0);
  const bool flat = d.r.chance(0.4), placed = d.r.chance(0.5);
  d.input(DType::f32, flat ? Dims{batch, steps, heads * width} : Dims{batch, heads, steps, width});
  const Dims cache = placed ? Dims{7, half} : Dims{batch, steps, half};
  d.input(DType::f32, cache);
  d.input(DType::f32, cache);
  if (placed) d.input(DType::i64, {batch, steps}, {0, 6, true});
  if (flat) d.set("num_heads", heads);
  if (d.r.chance(0.5)) d.set("interleaved", d.r.chance(0.5));
  if (turned != width) d.set("rotary_embedding_dim", turned);
  d.scale = 4;
}

constexpr Spec kWindowSpecs[] = {
    {"Conv", 1, 23, convolution},
    {"ConvTranspose", 1, 23, convolution},
    {"DeformConv", 19, 23, deformed},
    {"MaxPool", 1, 23, pool},
    {"AveragePool", 1, 23, pool},
    {"LpPool", 2, 23, pool},
    {"GlobalAveragePool", 1, 23, global_pool},
    {"GlobalMaxPool", 1, 23, global_pool},
    {"GlobalLpPool", 2, 23, global_pool},
    {"MaxUnpool", 9, 23, max_unpool},
    {"MatMul", 1, 23, matmul},
    {"Gemm", 7, 23, gemm},
    {"Einsum", 12, 23, einsum},
    {"Det", 11, 23, determinant, false},
    {"RNN", 7, 23, recurrent},
    {"GRU", 7, 23, recurrent},
    {"LSTM", 7, 23, recurrent},
    {"Attention", 23, 23, attention},
    {"RotaryEmbedding", 23, 23, rotary},
};

}  // namespace

std::span<const Spec> window_specs() { return kWindowSpecs; }

}  // namespace oclc::fuzz
