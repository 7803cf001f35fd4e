// Layers: normalisations (18, 21 to 23), attention and its rotations (23), recurrences and a loss (22), quantised products
// (21).
#include <algorithm>
#include <cmath>

#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

struct Moments {
  double mean, deviation;
};

Moments moments(const HostTensor& x, std::int64_t begin, std::int64_t count, double epsilon) {
  double mean = 0, square = 0;
  for (std::int64_t k = begin; k < begin + count; ++k) mean += x.at(k) / static_cast<double>(count);
  for (std::int64_t k = begin; k < begin + count; ++k) square += std::pow(x.at(k) - mean, 2) / static_cast<double>(count);
  return {mean, std::sqrt(square + epsilon)};
}

void groups(Sheet& s) {
  struct Case {
    Dims shape;
    std::int64_t groups;
  };
  for (const Case& c : {Case{{2, 6, 4, 3}, 2}, Case{{1, 4, 10}, 4}, Case{{3, 6, 5, 1}, 1}, Case{{1, 6, 1, 7, 1}, 3}}) {
    const HostTensor x = noise(DType::f32, c.shape, 1), scale = noise(DType::f32, {s.opset == 18 ? c.groups : c.shape[1]}, 2),
                     bias = noise(DType::f32, scale.shape(), 3);
    set_int(s.use("GroupNormalization", {s.input(x), s.input(scale), s.input(bias)}, c.shape.size() == 5), "num_groups",
            c.groups);
    const std::int64_t channel = x.elements() / (c.shape[0] * c.shape[1]), run = channel * c.shape[1] / c.groups;
    const bool by_group = s.opset == 18;
    s.gives(DType::f32, c.shape, [=](std::int64_t i) {
      const Moments m = moments(x, i / run * run, run, 1e-5);
      const std::int64_t at = by_group ? i / run % c.groups : i / channel % c.shape[1];
      return (x.at(i) - m.mean) / m.deviation * scale.at(at) + bias.at(at);
    });
  }
}

void normalisations(Sheet& s) {
  for (const HostTensor& x :
       {noise(DType::f32, {2, 3, 4, 5}, 1), noise(DType::f32, {1, 2, 9}, 2), noise(DType::f32, {3, 1, 1, 7, 1}, 3)}) {
    const bool awkward = x.shape().size() == 5;
    const std::int64_t channels = x.shape()[1], plane = x.elements() / (x.shape()[0] * channels);
    const HostTensor scale = noise(DType::f32, {channels}, 4), bias = noise(DType::f32, {channels}, 5);
    set_float(s.use("InstanceNormalization", {s.input(x), s.input(scale), s.input(bias)}, awkward), "epsilon", 0.01F);
    s.gives(DType::f32, x.shape(), [=](std::int64_t i) {
      const Moments m = moments(x, i / plane * plane, plane, 0.01);
      return (x.at(i) - m.mean) / m.deviation * scale.at(i / plane % channels) + bias.at(i / plane % channels);
    });
    for (const std::int64_t p : {1, 2}) {
      NodeProto& node = s.use("LpNormalization", {s.input(x)}, awkward);
      set_int(node, "axis", 1);
      set_int(node, "p", p);
      s.gives(DType::f32, x.shape(), [=](std::int64_t i) {
        double norm = 0;
        for (std::int64_t c = 0; c < channels; ++c)
          norm +=
              std::pow(std::fabs(x.at((i / (plane * channels) * channels + c) * plane + i % plane)), static_cast<double>(p));
        return x.at(i) / std::pow(norm, 1 / static_cast<double>(p));
      });
    }
  }
}

void losses(Sheet& s) {
  struct Case {
    Dims x, labels;
    const char* reduction;
    bool weighted;
  };
  for (const Case& c :
       {Case{{3, 5}, {3}, "none", false}, Case{{2, 4, 3}, {2, 3}, "mean", true}, Case{{1, 2, 1, 5}, {1, 1, 5}, "sum", true}}) {
    const HostTensor x = noise(DType::f32, c.x, 1), weight = listed(DType::f32, {c.x[1]}, {0.5, 2, 1, 0.25, 3});
    HostTensor labels(DType::i64, c.labels);
    for (std::int64_t i = 0; i < labels.elements(); ++i) labels.set_int(i, (i * 3 + 1) % c.x[1]);
    std::vector<std::string> inputs{s.input(x), s.input(labels)};
    if (c.weighted) inputs.push_back(s.input(weight));
    set_text(s.use("NegativeLogLikelihoodLoss", inputs, c.x.size() == 4), "reduction", c.reduction);
    const std::int64_t inner = labels.elements() / c.labels[0];
    const auto one = [=](std::int64_t i) {
      const std::int64_t label = labels.int_at(i);
      return -(c.weighted ? weight.at(label) : 1) * x.at((i / inner * c.x[1] + label) * inner + i % inner);
    };
    if (std::string(c.reduction) == "none") {
      s.gives(DType::f32, c.labels, one);
      continue;
    }
    double sum = 0, weights = 0;
    for (std::int64_t i = 0; i < labels.elements(); ++i) sum += one(i), weights += c.weighted ? weight.at(labels.int_at(i)) : 1;
    s.gives(DType::f32, {}, of({std::string(c.reduction) == "mean" ? sum / weights : sum}));
  }
}

// Root mean square over the axes from `axis` on.
void root_mean_squares(Sheet& s) {
  struct Case {
    Dims shape;
    std::int64_t axis;
  };
  for (const Case& c : {Case{{2, 3, 4}, -1}, Case{{2, 3, 5}, 1}, Case{{1, 7, 1}, 0}}) {
    const auto rank = static_cast<std::int64_t>(c.shape.size());
    const Dims inner(c.shape.begin() + (c.axis + rank) % rank, c.shape.end());
    const HostTensor x = noise(DType::f32, c.shape, 1), scale = noise(DType::f32, inner, 2);
    set_int(s.use("RMSNormalization", {s.input(x), s.input(scale)}, c.axis == 0), "axis", c.axis);
    const std::int64_t run = scale.elements();
    s.gives(DType::f32, c.shape, [=](std::int64_t i) {
      double square = 0;
      for (std::int64_t k = i / run * run; k < (i / run + 1) * run; ++k) square += x.at(k) * x.at(k) / static_cast<double>(run);
      return x.at(i) / std::sqrt(square + 1e-5) * scale.at(i % run);
    });
  }
}

void attentions(Sheet& s) {
  struct Case {
    std::int64_t batch, heads, shared, queries, keys, width, values;
    bool causal;
  };
  for (const Case& c : {Case{2, 2, 2, 4, 4, 3, 3, true}, Case{1, 6, 2, 3, 5, 4, 2, false}, Case{1, 1, 1, 1, 7, 1, 1, true},
                        Case{3, 4, 1, 5, 1, 2, 5, false}}) {
    const HostTensor q = noise(DType::f32, {c.batch, c.heads, c.queries, c.width}, 1),
                     k = noise(DType::f32, {c.batch, c.shared, c.keys, c.width}, 2),
                     v = noise(DType::f32, {c.batch, c.shared, c.keys, c.values}, 3);
    set_int(s.use("Attention", {s.input(q), s.input(k), s.input(v)}, c.width == 1), "is_causal", c.causal);
    s.gives(DType::f32, {c.batch, c.heads, c.queries, c.values}, [=](std::int64_t i) {
      const std::int64_t column = i % c.values, row = i / c.values % c.queries, head = i / (c.values * c.queries) % c.heads,
                         b = i / (c.values * c.queries * c.heads), group = b * c.shared + head / (c.heads / c.shared);
      double sum = 0, total = 0;
      for (std::int64_t j = 0; j < c.keys; ++j) {
        if (c.causal && j > row) continue;
        double dot = 0;
        for (std::int64_t n = 0; n < c.width; ++n)
          dot += q.at(((b * c.heads + head) * c.queries + row) * c.width + n) * k.at((group * c.keys + j) * c.width + n);
        const double share = std::exp(dot / std::sqrt(static_cast<double>(c.width)));
        sum += share;
        total += share * v.at((group * c.keys + j) * c.values + column);
      }
      return total / sum;
    });
  }
}

void rotations(Sheet& s) {
  struct Case {
    std::int64_t heads, steps, width, turned;
    bool interleaved;
  };
  for (const Case& c : {Case{2, 3, 4, 4, false}, Case{3, 5, 6, 4, true}, Case{1, 1, 2, 2, false}, Case{2, 7, 8, 2, true}}) {
    const std::int64_t half = c.turned / 2;
    const HostTensor x = noise(DType::f32, {2, c.heads, c.steps, c.width}, 1),
                     cosine = noise(DType::f32, {2, c.steps, half}, 2), sine = noise(DType::f32, {2, c.steps, half}, 3);
    NodeProto& node = s.use("RotaryEmbedding", {s.input(x), s.input(cosine), s.input(sine)}, c.steps == 1);
    set_int(node, "interleaved", c.interleaved);
    set_int(node, "rotary_embedding_dim", c.turned);
    s.gives(DType::f32, x.shape(), [=](std::int64_t i) {
      const std::int64_t d = i % c.width, row = i - d, step = i / c.width % c.steps, b = i / (c.heads * c.steps * c.width);
      if (d >= c.turned) return x.at(i);
      const std::int64_t k = c.interleaved ? d / 2 : d % half, at = (b * c.steps + step) * half + k;
      const double first = x.at(row + (c.interleaved ? 2 * k : k)), second = x.at(row + (c.interleaved ? 2 * k + 1 : k + half));
      const bool later = c.interleaved ? d % 2 == 1 : d >= half;
      return later ? sine.at(at) * first + cosine.at(at) * second : cosine.at(at) * first - sine.at(at) * second;
    });
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Y_h of a recurrence with `gates` rows of weights per hidden number: the specification's equations with default activations.
void recurrence(Sheet& s, const char* op, std::int64_t gates, std::int64_t steps, std::int64_t batch, std::int64_t inputs,
                std::int64_t hidden) {
  const HostTensor x = noise(DType::f32, {steps, batch, inputs}, 1), w = noise(DType::f32, {1, gates * hidden, inputs}, 2),
                   r = noise(DType::f32, {1, gates * hidden, hidden}, 3), bias = noise(DType::f32, {1, 2 * gates * hidden}, 4);
  NodeProto& node = s.use(op, {s.input(x), s.input(w), s.input(r), s.input(bias)}, hidden == 1, 2);
  set_int(node, "hidden_size", hidden);
  std::vector<double> state(static_cast<std::size_t>(batch * hidden), 0), cell = state, all;
  for (std::int64_t t = 0; t < steps; ++t) {
    std::vector<double> next = state;
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto part = [&](const HostTensor& m, std::int64_t gate, std::int64_t j, auto&& value, std::int64_t n) {
        double sum = 0;
        for (std::int64_t k = 0; k < n; ++k) sum += m.at((gate * hidden + j) * n + k) * value(k);
        return sum;
      };
      const auto given = [&](std::int64_t gate, std::int64_t j) {
        return part(
                   w, gate, j, [&](std::int64_t k) { return x.at((t * batch + b) * inputs + k); }, inputs) +
               bias.at(gate * hidden + j);
      };
      const auto recalled = [&](std::int64_t gate, std::int64_t j, auto&& scale) {
        return part(
                   r, gate, j, [&](std::int64_t k) { return scale(k) * state[static_cast<std::size_t>(b * hidden + k)]; },
                   hidden) +
               bias.at((gates + gate) * hidden + j);
      };
      const auto plain = [](std::int64_t) { return 1.0; };
      for (std::int64_t j = 0; j < hidden; ++j) {
        double& h = next[static_cast<std::size_t>(b * hidden + j)];
        const auto gate = [&](std::int64_t g) { return given(g, j) + recalled(g, j, plain); };
        if (gates == 1) {
          h = std::tanh(gate(0));
        } else if (gates == 3) {  // z, r, h
          const double z = sigmoid(gate(0));
          const double fresh = std::tanh(
              given(2, j) + recalled(2, j, [&](std::int64_t k) { return sigmoid(given(1, k) + recalled(1, k, plain)); }));
          h = (1 - z) * fresh + z * state[static_cast<std::size_t>(b * hidden + j)];
        } else {  // i, o, f, c
          double& c = cell[static_cast<std::size_t>(b * hidden + j)];
          c = sigmoid(gate(2)) * c + sigmoid(gate(0)) * std::tanh(gate(3));
          h = sigmoid(gate(1)) * std::tanh(c);
        }
      }
    }
    state = next;
    all.insert(all.end(), state.begin(), state.end());
  }
  s.gives(DType::f32, {steps, 1, batch, hidden}, of(all));
  s.gives(DType::f32, {1, batch, hidden}, of(state), 1);
}

void quantised_products(Sheet& s) {
  struct Case {
    DType dtype;
    Dims a, b;
    DType scales;
  };
  for (const Case& c : {Case{DType::u8, {2, 4}, {4, 3}, DType::f32}, Case{DType::i8, {2, 2, 5}, {2, 5, 3}, DType::f16},
                        Case{DType::i8, {1, 1}, {1, 1}, DType::bf16}}) {
    const bool sign = c.dtype == DType::i8;
    const HostTensor a = listed(c.dtype, c.a, {3, 100, 7, 60, 21, 90}), b = listed(c.dtype, c.b, {11, 2, 45, 80, 5, 33, 64});
    const auto scalar = [&](DType dtype, double v) { return s.input(listed(dtype, {}, {v})); };
    const double zero = sign ? -4 : 12;
    s.use("QLinearMatMul",
          {s.input(a), scalar(c.scales, 0.125), scalar(c.dtype, 2), s.input(b), scalar(c.scales, 0.0625), scalar(c.dtype, 8),
           scalar(c.scales, 0.5), scalar(c.dtype, zero)},
          c.a.size() == 2 && c.a[1] == 1);
    Dims shape = c.a;
    shape.back() = c.b.back();
    const std::int64_t n = c.b.back(), k = c.a.back(), m = c.a[c.a.size() - 2];
    s.gives(c.dtype, shape, [=](std::int64_t i) {
      double sum = 0;
      for (std::int64_t t = 0; t < k; ++t)
        sum += (a.at(i / n * k + t) - 2) * (b.at((c.b.size() == 3 ? i / (m * n) * k : 0) * n + t * n + i % n) - 8);
      return std::clamp(std::nearbyint(sum * 0.125 * 0.0625 / 0.5) + zero, sign ? -128.0 : 0.0, sign ? 127.0 : 255.0);
    });
  }
}

}  // namespace

void normalization_uses(Sheet& s) {
  if (s.opset == 18 || s.opset == 21) groups(s);
  if (s.opset == 21) quantised_products(s);
  if (s.opset == 22) {
    normalisations(s);
    losses(s);
  }
  if (s.opset == 23) {
    root_mean_squares(s);
    attentions(s);
    rotations(s);
  }
}

void recurrent_uses(Sheet& s) {
  if (s.opset != 22) return;
  struct Row {
    const char* op;
    std::int64_t gates;
  };
  for (const Row& row : {Row{"RNN", 1}, Row{"GRU", 3}, Row{"LSTM", 4}}) {
    recurrence(s, row.op, row.gates, 3, 2, 4, 5);
    recurrence(s, row.op, row.gates, 1, 3, 2, 2);
    recurrence(s, row.op, row.gates, 5, 1, 1, 1);
  }
}

}  // namespace oclc::test
