// If, Loop and Scan over values of the element types that opsets 19, 21 and 23 brought, and optionals, which 18 lets be
// tensors.
#include "frontends/onnx/model/tensors.h"
#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

using Types = std::vector<DType>;

NodeProto& add(GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
  NodeProto& node = *graph.add_node();
  Writer::fill(node, op, inputs, outputs);
  return node;
}

GraphProto& body_of(NodeProto& node, const std::string& name) {
  GraphProto& graph = *attribute(node, name, AttributeProto::GRAPH).mutable_g();
  graph.set_name(name);
  return graph;
}

// If `condition`, then a, else b turned around.
void choice(Sheet& s, DType dtype, const Dims& shape, bool condition, bool known) {
  const HostTensor a = noise(dtype, shape, 1, 5), b = noise(dtype, {shape.rbegin(), shape.rend()}, 2, 5);
  const HostTensor flag = listed(DType::boolean, {}, {condition ? 1.0 : 0.0});
  const std::string one = s.input(a), other = s.input(b), which = known ? s.known(flag) : s.input(flag);
  NodeProto& node = s.use("If", {which}, shape[0] == 1);
  GraphProto &yes = body_of(node, "then_branch"), &no = body_of(node, "else_branch");
  add(yes, "Identity", {one}, {"chosen"});
  yes.add_output()->set_name("chosen");
  set_list(add(no, "Transpose", {other}, {"turned"}), "perm", {1, 0});
  no.add_output()->set_name("turned");
  s.gives(dtype, shape, [=](std::int64_t i) {
    const Dims index = unflat(i, shape);
    return condition ? a.at(i) : b.at(flat({index[1], index[0]}, b.shape()));
  });
}

// Carries v and turns its two halves around in each trip.
void turns(Sheet& s, DType dtype, std::int64_t trips, std::int64_t half) {
  const HostTensor v = noise(dtype, {2 * half, 1}, 3, 5);
  const std::string start = s.input(v), count = s.known(listed(DType::i64, {}, {static_cast<double>(trips)})),
                    perm = s.known_ints({2, half, 1}), back = s.known_ints({2 * half, 1});
  NodeProto& node = s.use("Loop", {count, "", start}, half == 1, 2);
  GraphProto& body = body_of(node, "body");
  set_type(*body.add_input(), "at", {}, TensorProto::INT64);
  set_type(*body.add_input(), "go", {}, TensorProto::BOOL);
  body.add_input()->set_name("v");
  add(body, "Identity", {"go"}, {"still"});
  // [2, half, 1]: half 1 before half 0
  add(body, "Reshape", {"v", perm}, {"parts"});
  NodeProto& split = add(body, "Split", {"parts"}, {"low", "high"});
  set_int(split, "axis", 0);
  set_int(split, "num_outputs", 2);
  set_int(add(body, "Concat", {"high", "low"}, {"swapped"}), "axis", 0);
  add(body, "Reshape", {"swapped", back}, {"next"});
  add(body, "Identity", {"next"}, {"each"});
  for (const char* name : {"still", "next", "each"}) body.add_output()->set_name(name);
  const auto after = [=](std::int64_t trip, std::int64_t i) { return v.at(trip % 2 == 1 ? (i + half) % (2 * half) : i); };
  s.gives(dtype, v.shape(), [=](std::int64_t i) { return after(trips, i); });
  s.gives(
      dtype, {trips, 2 * half, 1}, [=](std::int64_t i) { return after(i / (2 * half) + 1, i % (2 * half)); }, 1);
}

// Gives each element of x, and the one before it, which it carries.
void delays(Sheet& s, DType dtype, std::int64_t length, const Dims& each, bool backwards) {
  Dims shape{length};
  shape.insert(shape.end(), each.begin(), each.end());
  const HostTensor x = noise(dtype, shape, 4, 5), first = noise(dtype, each, 5, 5);
  NodeProto& node = s.use("Scan", {s.input(first), s.input(x)}, length == 1 || each.empty(), 2);
  set_int(node, "num_scan_inputs", 1);
  if (backwards) set_list(node, "scan_input_directions", {1});
  GraphProto& body = body_of(node, "body");
  body.add_input()->set_name("before");
  body.add_input()->set_name("now");
  add(body, "Identity", {"now"}, {"kept"});
  add(body, "Identity", {"before"}, {"shown"});
  body.add_output()->set_name("kept");
  body.add_output()->set_name("shown");
  const std::int64_t size = first.elements();
  const auto read = [=](std::int64_t trip, std::int64_t i) { return x.at((backwards ? length - 1 - trip : trip) * size + i); };
  s.gives(dtype, each, [=](std::int64_t i) { return read(length - 1, i); });
  s.gives(
      dtype, shape, [=](std::int64_t i) { return i < size ? first.at(i) : read(i / size - 1, i % size); }, 1);
}

void optionals(Sheet& s) {
  const HostTensor x = noise(DType::f32, {2, 3}, 1), one = noise(DType::f32, {}, 2), none(DType::f32, {0, 3});
  for (const HostTensor& v : {x, one, none}) {
    const bool awkward = v.elements() == 0;
    const auto values = [v](std::int64_t i) { return v.at(i); };
    s.use("OptionalHasElement", {s.input(v)}, awkward);
    s.gives(DType::boolean, {}, of({1}));
    s.use("OptionalGetElement", {s.input(v)}, awkward);
    s.gives(DType::f32, v.shape(), values);
    s.use("OptionalGetElement", {s.step("Optional", {s.input(v)})}, awkward);
    s.gives(DType::f32, v.shape(), values);
  }
  s.use("OptionalHasElement", {});
  s.gives(DType::boolean, {}, of({0}));
  s.use("OptionalHasElement", {s.step("Optional", {s.input(x)})});
  s.gives(DType::boolean, {}, of({1}));
}

}  // namespace

void control_uses(Sheet& s) {
  if (s.opset == 18) optionals(s);
  for (const DType dtype : s.opset == 19   ? Types{DType::f8e4m3fnuz, DType::f8e5m2fnuz}
                           : s.opset == 21 ? Types{DType::u4, DType::i4}
                           : s.opset == 23 ? Types{DType::f4e2m1}
                                           : Types{}) {
    choice(s, dtype, {2, 3}, true, true);
    choice(s, dtype, {2, 3}, false, false);
    choice(s, dtype, {1, 5}, true, false);
    turns(s, dtype, 2, 3);
    turns(s, dtype, 5, 2);
    turns(s, dtype, 3, 1);
    delays(s, dtype, 4, {3}, false);
    delays(s, dtype, 3, {2, 2}, true);
    delays(s, dtype, 1, {}, false);
  }
}

}  // namespace oclc::test
