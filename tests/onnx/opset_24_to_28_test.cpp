// What opsets 24 to 28 brought, from the specification's text: results beside loops written down here.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::opset_24_to_28_test {

using oclc_onnx::TensorProto;
using Sizes = std::vector<std::int64_t>;

HostTensor noise(Sizes shape, unsigned seed) { return random_tensor(DType::f32, std::move(shape), seed); }

HostTensor whole(Sizes shape, const std::vector<std::int64_t>& values) {
  HostTensor t(DType::i64, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<std::int64_t>(i), values[i]);
  return t;
}

// By the reference; the device gives the same.
std::vector<HostTensor> run(const Writer& w, const std::vector<HostTensor>& inputs) {
  const auto module = w.import();
  REQUIRE(verify(*module->entries[0]) == "");
  CHECK(compare_with_reference(*module->entries[0], inputs).max_rel < 1e-5);
  return evaluate(*module->entries[0], inputs);
}

void check(const HostTensor& found, const Sizes& shape, const std::function<double(std::int64_t)>& wanted) {
  REQUIRE(found.shape() == shape);
  for (std::int64_t i = 0; i < found.elements(); ++i) CHECK(found.at(i) == doctest::Approx(wanted(i)).epsilon(1e-4));
}

TEST_CASE("Swish and SwiGLU") {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  Writer w(28);
  w.input("x", {3, 5}).input("z", {3, 5}).output("y").output("v");
  set_float(w.node("Swish", {"x"}, {"y"}), "alpha", 0.5F);
  w.node("SwiGLU", {"x", "z"}, {"v"});
  const HostTensor x = noise({3, 5}, 1), z = noise({3, 5}, 2);
  const auto y = run(w, {x, z});
  check(y[0], {3, 5}, [&](std::int64_t i) { return x.at(i) * sigmoid(0.5 * x.at(i)); });
  check(y[1], {3, 5}, [&](std::int64_t i) { return x.at(i) * sigmoid(x.at(i)) * z.at(i); });
}

TEST_CASE("CumProd goes as CumSum does") {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      Writer w(26);
      w.input("x", {2, 4}).output("y").ints("axis", {}, {-1});
      NodeProto& node = w.node("CumProd", {"x", "axis"}, {"y"});
      set_int(node, "exclusive", exclusive);
      set_int(node, "reverse", reverse);
      const HostTensor x = noise({2, 4}, 3);
      check(run(w, {x})[0], {2, 4}, [&](std::int64_t i) {
        double product = 1;
        for (std::int64_t k = 0; k < 4; ++k) {
          const std::int64_t behind = reverse ? k - i % 4 : i % 4 - k;
          if (behind >= (exclusive ? 1 : 0)) product *= x.at(i / 4 * 4 + k);
        }
        return product;
      });
    }
  }
}

TEST_CASE("TensorScatter writes behind what each batch has") {
  for (const bool circular : {false, true}) {
    Writer w(24);
    w.input("cache", {2, 5, 3}).input("update", {2, 2, 3}).input("at", {2}, TensorProto::INT64).output("y");
    NodeProto& node = w.node("TensorScatter", {"cache", "update", "at"}, {"y"});
    if (circular) set_text(node, "mode", "circular");
    const HostTensor cache = noise({2, 5, 3}, 1), update = noise({2, 2, 3}, 2);
    const Sizes at{1, circular ? 4 : 3};
    check(run(w, {cache, update, whole({2}, at)})[0], {2, 5, 3}, [&](std::int64_t i) {
      const std::int64_t b = i / 15, row = i / 3 % 5;
      std::int64_t from = row - at[static_cast<std::size_t>(b)];
      if (circular) from = (from + 5) % 5;
      return from >= 0 && from < 2 ? update.at((b * 2 + from) * 3 + i % 3) : cache.at(i);
    });
  }
}

TEST_CASE("Attention looks through a window, and at the keys that a cache holds") {
  const std::int64_t queries = 2, keys = 6, width = 4;
  for (const bool windowed : {false, true}) {
    Writer w(25);
    w.input("q", {2, 1, queries, width}).input("k", {2, 1, keys, width}).input("v", {2, 1, keys, width});
    w.input("n", {2}, TensorProto::INT64).output("y");
    NodeProto& node = w.node("Attention", {"q", "k", "v", "", "", "", "n"}, {"y"});
    set_int(node, "is_causal", 1);
    if (windowed) set_int(node, "left_window_size", 1);
    const HostTensor q = noise({2, 1, queries, width}, 1), k = noise({2, 1, keys, width}, 2), v = noise({2, 1, keys, width}, 3);
    const Sizes used{5, 1};  // the first query of the second batch has no key
    check(run(w, {q, k, v, whole({2}, used)})[0], {2, 1, queries, width}, [&](std::int64_t i) {
      const std::int64_t b = i / (queries * width), row = i / width % queries;
      const std::int64_t place = used[static_cast<std::size_t>(b)] - queries + row;
      double sum = 0, total = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        if (j > place || j >= used[static_cast<std::size_t>(b)] || (windowed && j < place - 1)) continue;
        double score = 0;
        for (std::int64_t d = 0; d < width; ++d)
          score += q.at((b * queries + row) * width + d) * k.at((b * keys + j) * width + d);
        const double share = std::exp(score / 2);
        total += share;
        sum += share * v.at((b * keys + j) * width + i % width);
      }
      return total == 0 ? 0 : sum / total;
    });
  }
  Writer both(24);
  both.input("q", {1, 1, 1, 4}).input("n", {1}, TensorProto::INT64).output("y");
  both.node("Attention", {"q", "q", "q", "", "q", "q", "n"}, {"y"}, "attend");
  CHECK(both.refusal() == "node 'attend' (Attention): wanted a past or the lengths of caches, found both");
}

TEST_CASE("CausalConvWithState convolves what was before, and keeps the end") {
  Writer w(27);
  w.input("x", {2, 3, 5}).input("past", {2, 3, 2}).output("y").output("state");
  const std::vector<float> k{1, 2, 3, -1, 0, 1, 0.5F, 0.25F, 0.125F};
  w.floats("k", {3, 1, 3}, k);
  set_text(w.node("CausalConvWithState", {"x", "k", "", "past"}, {"y", "state"}), "activation", "silu");
  const HostTensor x = noise({2, 3, 5}, 1), past = noise({2, 3, 2}, 2);
  const auto at = [&](std::int64_t row, std::int64_t i) { return i < 2 ? past.at(row * 2 + i) : x.at(row * 5 + i - 2); };
  const auto y = run(w, {x, past});
  check(y[0], {2, 3, 5}, [&](std::int64_t i) {
    double sum = 0;
    for (std::int64_t t = 0; t < 3; ++t)
      sum += static_cast<double>(k[static_cast<std::size_t>(i / 5 % 3 * 3 + t)]) * at(i / 5, i % 5 + t);
    return sum / (1 + std::exp(-sum));
  });
  check(y[1], {2, 3, 2}, [&](std::int64_t i) { return at(i / 2, 5 + i % 2); });
}

TEST_CASE("LinearAttention is the recurrence of its rule") {
  const std::int64_t steps = 4, width = 3, values = 2;
  for (const std::string rule : {"linear", "gated", "delta", "gated_delta"}) {
    const bool gated = rule.find("gated") == 0, corrected = rule.find("delta") != std::string::npos;
    Writer w(27);
    w.input("q", {1, steps, 2 * width}).input("k", {1, steps, width}).input("v", {1, steps, values});
    w.input("g", {1, steps, 1}).input("b", {1, steps, 1}).output("y").output("state");
    NodeProto& node = w.node("LinearAttention", {"q", "k", "v", "", gated ? "g" : "", corrected ? "b" : ""}, {"y", "state"});
    set_int(node, "q_num_heads", 2);
    set_int(node, "kv_num_heads", 1);
    set_text(node, "update_rule", rule);
    const HostTensor q = noise({1, steps, 2 * width}, 1), k = noise({1, steps, width}, 2), v = noise({1, steps, values}, 3),
                     g = noise({1, steps, 1}, 4), rate = noise({1, steps, 1}, 5);
    std::vector<double> state(static_cast<std::size_t>(width * values)), result;
    for (std::int64_t t = 0; t < steps; ++t) {
      for (double& s : state) s *= gated ? std::exp(g.at(t)) : 1;
      for (std::int64_t j = 0; j < values; ++j) {
        double seen = 0;
        for (std::int64_t i = 0; i < width; ++i) seen += k.at(t * width + i) * state[static_cast<std::size_t>(i * values + j)];
        const double more = corrected ? rate.at(t) * (v.at(t * values + j) - seen) : v.at(t * values + j);
        for (std::int64_t i = 0; i < width; ++i) state[static_cast<std::size_t>(i * values + j)] += k.at(t * width + i) * more;
      }
      for (std::int64_t head = 0; head < 2; ++head) {
        for (std::int64_t j = 0; j < values; ++j) {
          double sum = 0;
          for (std::int64_t i = 0; i < width; ++i)
            sum += q.at(t * 2 * width + head * width + i) * state[static_cast<std::size_t>(i * values + j)];
          result.push_back(sum / std::sqrt(3.0));
        }
      }
    }
    const auto y = run(w, {q, k, v, g, rate});
    check(y[0], {1, steps, 2 * values}, [&](std::int64_t i) { return result[static_cast<std::size_t>(i)]; });
    check(y[1], {1, 1, width, values}, [&](std::int64_t i) { return state[static_cast<std::size_t>(i)]; });
  }
}

TEST_CASE("FlexAttention changes scores and shares by the model's own graphs") {
  Writer w(26);
  w.model.add_opset_import()->set_domain("ai.onnx.preview");
  w.model.mutable_opset_import(1)->set_version(1);
  w.input("q", {1, 2, 3, 4}).input("k", {1, 1, 3, 4}).output("y").output("plain").floats("half", {}, {0.5F});
  const auto attend = [&](const char* result) -> NodeProto& {
    NodeProto& node = w.node("FlexAttention", {"q", "k", "k"}, {result}, result);
    node.set_domain("ai.onnx.preview");
    return node;
  };
  NodeProto& node = attend("y");
  set_float(node, "scale", 1.0F);
  set_float(attend("plain"), "scale", 0.5F);
  GraphProto& body = *attribute(node, "score_mod", AttributeProto::GRAPH).mutable_g();
  set_type(*body.add_input(), "s", {1, 2, 3, 3});
  Writer::fill(*body.add_node(), "Mul", {"s", "half"}, {"t"});
  set_type(*body.add_output(), "t", {1, 2, 3, 3});
  const auto y = run(w, {noise({1, 2, 3, 4}, 1), noise({1, 1, 3, 4}, 2)});
  check(y[0], {1, 2, 3, 4}, [&](std::int64_t i) { return y[1].at(i); });
}

TEST_CASE("Mod of floats has the divisor's sign") {
  Writer w(28);
  w.input("a", {4}).input("b", {4}).output("y");
  w.node("Mod", {"a", "b"}, {"y"}, "mod");
  HostTensor a(DType::f32, {4}), b(DType::f32, {4});
  const double as[] = {-4.5, 7, 5, -8}, bs[] = {2, -3, 8, -3};
  for (std::int64_t i = 0; i < 4; ++i) a.set(i, as[i]), b.set(i, bs[i]);
  check(run(w, {a, b})[0], {4}, [&](std::int64_t i) { return as[i] - bs[i] * std::floor(as[i] / bs[i]); });
  w.model.mutable_opset_import(0)->set_version(13);
  CHECK(w.refusal() == "node 'mod' (Mod): wanted fmod=1 for floating-point numbers, found fmod=0");
}

TEST_CASE("SpaceToDepth in both orders") {
  for (const bool columns_first : {false, true}) {
    Writer w(28);
    w.input("x", {1, 2, 4, 6}).output("y");
    NodeProto& node = w.node("SpaceToDepth", {"x"}, {"y"}, "deepen");
    set_int(node, "blocksize", 2);
    set_text(node, "mode", columns_first ? "CRD" : "DCR");
    const HostTensor x = noise({1, 2, 4, 6}, 1);
    check(run(w, {x})[0], {1, 8, 2, 3}, [&](std::int64_t i) {
      const std::int64_t channel = i / 6, row = i / 3 % 2, column = i % 3;
      const std::int64_t c = columns_first ? channel / 4 : channel % 2, block = columns_first ? channel % 4 : channel / 2;
      return x.at((c * 4 + row * 2 + block / 2) * 6 + column * 2 + block % 2);
    });
  }
}

TEST_CASE("An attribute that nothing reads is refused, unless it is zero") {
  Writer w(24);
  w.input("x", {2}).output("y");
  set_text(w.node("Relu", {"x"}, {"y"}, "act"), "mode", "fast");
  CHECK(
      w.refusal() ==
      "node 'act' (Relu): wanted attributes that opset 24 of the operator has, found 'mode'; the model needs a newer operator, "
      "or the attribute removed");
  w.graph().mutable_node(0)->mutable_attribute(0)->set_s("");
  CHECK(w.refusal().empty());
}

TEST_CASE("Functions of one name are told apart by their overload") {
  Writer w(26);
  w.model.add_opset_import()->set_domain("local");
  w.model.mutable_opset_import(1)->set_version(1);
  w.input("x", {3}).output("y").output("z");
  for (const char* overload : {"one", "two"}) {
    auto& function = *w.model.add_functions();
    function.set_name("F");
    function.set_domain("local");
    function.set_overload(overload);
    function.add_opset_import()->set_version(26);
    function.add_input("a");
    function.add_output("b");
    Writer::fill(*function.add_node(), std::string(overload) == "one" ? "Neg" : "Exp", {"a"}, {"b"});
    NodeProto& call = w.node("F", {"x"}, {std::string(overload) == "one" ? "y" : "z"});
    call.set_domain("local");
    call.set_overload(overload);
  }
  const HostTensor x = noise({3}, 1);
  const auto y = run(w, {x});
  check(y[0], {3}, [&](std::int64_t i) { return -x.at(i); });
  check(y[1], {3}, [&](std::int64_t i) { return std::exp(x.at(i)); });
}

}  // namespace oclc::test::opset_24_to_28_test
