// Recurrent layers, by ONNX's readers of RNN, GRU and LSTM: layer after layer, with gates in ONNX's order.
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

struct Kind {
  std::string_view onnx;
  Ints gates;                       // ONNX's i-th gate is torch's gates[i]
  std::string activation = "Tanh";  // of RNN
};

Kind kind_of(std::string_view name) {
  if (name == "lstm") return {"LSTM", {0, 3, 1, 2}};  // i, f, g, o as i, o, f, g
  if (name == "gru") return {"GRU", {1, 0, 2}};       // r, z, n as z, r, n
  return {"RNN", {0}, name == "relu" ? "Relu" : "Tanh"};
}

Value* row_of(AtenContext& c, Value* x) {
  Shape shape = x->type.shape;
  shape.insert(shape.begin(), Expr(1));
  return c.b.reshape(x, std::move(shape));
}

// [gates * H, ..] with the gates in ONNX's order.
Value* with_gates_of(AtenContext& c, Value* x, const Kind& kind) {
  if (kind.gates.size() == 1) return x;
  const Expr hidden = floor_div(x->type.shape[0], Expr(static_cast<std::int64_t>(kind.gates.size())));
  std::vector<Value*> parts;
  for (const std::int64_t gate : kind.gates) parts.push_back(c.b.slice_axis(x, 0, hidden * gate, hidden));
  return c.b.concat(parts, 0);
}

// One direction of one layer: ONNX's W, R and B (null where there are no biases).
struct Cell {
  Value *w = nullptr, *r = nullptr, *bias = nullptr;
};

Cell cell_of(AtenContext& c, const Kind& kind, Value* w, Value* r, Value* of_input, Value* of_state) {
  Cell cell{row_of(c, with_gates_of(c, w, kind)), row_of(c, with_gates_of(c, r, kind)), nullptr};
  if (of_input) cell.bias = row_of(c, c.b.concat({with_gates_of(c, of_input, kind), with_gates_of(c, of_state, kind)}, 0));
  return cell;
}

Value* joined(AtenContext& c, const std::vector<Value*>& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : c.b.concat(parts, axis);
}

// y[time, directions, batch, H] and the last states [directions, batch, H].
Outputs layer(AtenContext& c, const Kind& kind, Value* x, const std::vector<Cell>& cells, Value* h, Value* state) {
  const auto all = [&](Value* Cell::*part) -> Value* {
    std::vector<Value*> list;
    for (const Cell& cell : cells)
      if (cell.*part) list.push_back(cell.*part);
    return list.empty() ? nullptr : joined(c, list, 0);
  };
  Value *w = all(&Cell::w), *r = all(&Cell::r), *bias = all(&Cell::bias);
  if (!r->type.shape[2].is_constant()) c.refuse("a state of a size known when compiling", r->type.text());
  std::vector<OnnxAttribute> attributes = {{"hidden_size", r->type.shape[2].value()},
                                           {"direction", std::string(cells.size() == 2 ? "bidirectional" : "forward")}};
  if (kind.onnx == "GRU") attributes.push_back({"linear_before_reset", std::int64_t{1}});
  std::vector<Value*> inputs{x, w, r, bias, nullptr, h};
  if (kind.onnx == "LSTM") inputs.push_back(state);
  if (kind.onnx == "RNN") attributes.push_back({"activations", std::vector<std::string>(cells.size(), kind.activation)});
  return onnx_call(c, kind.onnx, std::move(inputs), std::move(attributes), kind.onnx == "LSTM" ? 3 : 2);
}

struct Network {
  std::int64_t layers = 1;
  std::size_t directions = 1;
  bool biases = true, batch_first = false;
};

Network network_of(AtenContext& c) {
  if (c.flag("train") && c.real("dropout", 0) > 0)
    c.refuse("recurrent layers without dropout between them", "dropout that draws",
             "call model.eval() before exporting, or set dropout=0");
  return {c.integer("num_layers"), c.flag("bidirectional") ? 2U : 1U, c.flag("has_biases"), c.flag("batch_first")};
}

std::vector<Cell> cells_of(AtenContext& c, const Kind& kind, const Network& n, std::size_t l) {
  const std::vector<Value*> params = c.tensors("params");
  const std::size_t each = n.biases ? 4 : 2;
  if (params.size() != static_cast<std::size_t>(n.layers) * n.directions * each)
    c.refuse("layers without projections of their states", std::to_string(params.size()) + " tensors", "set proj_size=0");
  std::vector<Cell> cells;
  for (std::size_t d = 0; d < n.directions; ++d) {
    Value* const* own = params.data() + (l * n.directions + d) * each;
    cells.push_back(cell_of(c, kind, own[0], own[1], n.biases ? own[2] : nullptr, n.biases ? own[3] : nullptr));
  }
  return cells;
}

Outputs recurrent(AtenContext& c) {
  const Kind kind = kind_of(c.core());
  const Network n = network_of(c);
  const bool lstm = c.core() == "lstm";
  Value* x = c.tensor("input");
  std::vector<Value*> states = lstm ? c.tensors("hx") : std::vector<Value*>{c.tensor("hx")};
  const bool alone = x->type.rank() == 2;  // no batch
  const auto with_batch = [&](Value* v) { return c.b.reshape(v, {v->type.shape[0], Expr(1), v->type.shape[1]}); };
  if (alone) {
    x = with_batch(x);
    for (Value*& state : states) state = with_batch(state);
  } else if (n.batch_first) {
    x = c.b.transpose(x, {1, 0, 2});
  }
  const auto directions = static_cast<std::int64_t>(n.directions);
  std::vector<Value*> last[2];
  for (std::int64_t l = 0; l < n.layers; ++l) {
    const auto of_layer = [&](std::size_t i) {
      return c.b.slice_axis(states.at(i), 0, Expr(l * directions), Expr(directions));
    };
    const Outputs out =
        layer(c, kind, x, cells_of(c, kind, n, static_cast<std::size_t>(l)), of_layer(0), lstm ? of_layer(1) : nullptr);
    Value* y = c.b.transpose(out[0], {0, 2, 1, 3});
    const Shape& s = y->type.shape;
    x = c.b.reshape(y, {s[0], s[1], s[2] * s[3]});
    for (std::size_t i = 0; i < states.size(); ++i) last[i].push_back(out[i + 1]);
  }
  Outputs results{n.batch_first && !alone ? c.b.transpose(x, {1, 0, 2}) : x};
  for (std::size_t i = 0; i < states.size(); ++i) results.push_back(joined(c, last[i], 0));
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = c.b.reshape(results[i], c.result(i).shape);
  return results;
}

// One step of one layer.
Outputs cell(AtenContext& c) {
  const Kind kind = kind_of(c.core());
  const bool lstm = c.core() == "lstm";
  const auto row = [&](Value* v) { return v->type.rank() == 1 ? row_of(c, v) : v; };
  const std::vector<Value*> states = lstm ? c.tensors("hx") : std::vector<Value*>{c.tensor("hx")};
  const Cell one = cell_of(c, kind, c.tensor("w_ih"), c.tensor("w_hh"), c.optional_tensor("b_ih"), c.optional_tensor("b_hh"));
  const Outputs out = layer(c, kind, row_of(c, row(c.tensor("input"))), {one}, row_of(c, row(states.at(0))),
                            lstm ? row_of(c, row(states.at(1))) : nullptr);
  Outputs results;
  for (std::size_t i = 0; i < states.size(); ++i) results.push_back(c.b.reshape(out[i + 1], c.result(i).shape));
  return results;
}

constexpr OpRow kRecurrentRows[] = {
    {"aten.lstm.input", recurrent, "lstm"},       {"aten.gru.input", recurrent, "gru"},
    {"aten.rnn_tanh.input", recurrent, "tanh"},   {"aten.rnn_relu.input", recurrent, "relu"},
    {"aten.lstm_cell.default", cell, "lstm"},     {"aten.gru_cell.default", cell, "gru"},
    {"aten.rnn_tanh_cell.default", cell, "tanh"}, {"aten.rnn_relu_cell.default", cell, "relu"},
};

}  // namespace

std::span<const OpRow> recurrent_rows() { return kRecurrentRows; }

}  // namespace oclc::pt2
