// Plans by hand, for tests of the package format and the runtime: fill a PlanT, then `finish`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan_generated.h"
#include "runtime/package/expr_code.h"
#include "runtime/package/package.h"
#include "runtime/package/writer.h"

namespace oclc::test {

namespace fb = oclc::plan;
using ExprPtr = std::unique_ptr<fb::ExprT>;
using package::ExprOp;

// An expression that is copied into the plan's tables by `ptr`.
struct E {
  std::vector<std::int64_t> code;
  E(std::int64_t value) : code{0, value} {}  // NOLINT: literals are expressions
  static E symbol(int index) {
    E e(0);
    e.code = {1, index};
    return e;
  }
  E then(const E& other, ExprOp op) const {
    E e = *this;
    e.code.insert(e.code.end(), other.code.begin(), other.code.end());
    e.code.push_back(static_cast<std::int64_t>(op));
    return e;
  }
  E operator*(const E& other) const { return then(other, ExprOp::mul); }
  E operator+(const E& other) const { return then(other, ExprOp::add); }
  ExprPtr ptr() const {
    auto p = std::make_unique<fb::ExprT>();
    p->code = code;
    return p;
  }
};

inline std::unique_ptr<fb::SymbolT> symbol(const std::string& name, std::int64_t lo, std::int64_t hi, bool loop = false) {
  auto s = std::make_unique<fb::SymbolT>();
  s->name = name;
  s->lo = lo;
  s->hi = hi;
  s->loop = loop;
  return s;
}

inline std::unique_ptr<fb::BufferT> buffer(const std::string& name, fb::BufferKind kind, const E& bytes,
                                           fb::DType dtype = fb::DType::f32) {
  auto b = std::make_unique<fb::BufferT>();
  b->name = name;
  b->kind = kind;
  b->dtype = dtype;
  b->bytes = bytes.ptr();
  return b;
}

inline std::unique_ptr<fb::BufferT> arena_buffer(const std::string& name, const E& bytes, int entry, int first, int last,
                                                 int alias = -1) {
  auto b = buffer(name, fb::BufferKind::arena, bytes);
  b->entry = entry;
  b->first = first;
  b->last = last;
  b->alias = alias;
  return b;
}

inline std::unique_ptr<fb::BufferT> constant(const std::string& name, std::uint64_t offset, std::int64_t bytes) {
  auto b = buffer(name, fb::BufferKind::constant, bytes);
  b->constant_offset = offset;
  return b;
}

inline std::unique_ptr<fb::ProgramT> program(const std::string& name, const std::string& source) {
  auto p = std::make_unique<fb::ProgramT>();
  p->name = name;
  p->source = source;
  return p;
}

inline std::unique_ptr<fb::BindingT> binding(const std::string& name, int buffer, const std::vector<E>& shape,
                                             fb::DType dtype = fb::DType::f32) {
  auto b = std::make_unique<fb::BindingT>();
  b->name = name;
  b->buffer = buffer;
  b->dtype = dtype;
  for (const E& e : shape) b->shape.push_back(e.ptr());
  return b;
}

inline std::unique_ptr<fb::ArgT> reads(int buffer, const E& offset = 0) {
  auto a = std::make_unique<fb::ArgT>();
  a->buffer = buffer;
  a->value = offset.ptr();
  return a;
}

inline std::unique_ptr<fb::ArgT> writes(int buffer, const E& offset = 0) {
  auto a = reads(buffer, offset);
  a->writes = true;
  return a;
}

inline std::unique_ptr<fb::ArgT> value(fb::ArgKind kind, const E& e) {
  auto a = std::make_unique<fb::ArgT>();
  a->kind = kind;
  a->value = e.ptr();
  return a;
}

template <class... Args>
std::unique_ptr<fb::StepT> launch(const std::string& kernel, int program, const std::vector<E>& global,
                                  const std::vector<std::uint32_t>& local, Args... args) {
  fb::LaunchT l;
  l.name = kernel;
  l.program = program;
  for (const E& e : global) l.global.push_back(e.ptr());
  l.local = local;
  (l.args.push_back(std::move(args)), ...);
  l.anchor = "pointwise";
  l.nodes = {kernel + "_node"};
  l.flops = global[0].ptr();
  l.bytes = (global[0] * 12).ptr();
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(l));
  return step;
}

inline std::unique_ptr<fb::StepT> loop(const E& trip, int counter, std::vector<std::unique_ptr<fb::StepT>> body) {
  fb::LoopT l;
  l.trip = trip.ptr();
  l.counter = counter;
  l.body = std::move(body);
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(l));
  return step;
}

inline std::unique_ptr<fb::EntryT> entry(const std::string& name) {
  auto e = std::make_unique<fb::EntryT>();
  e->name = name;
  return e;
}

inline fb::PlanT new_plan() {
  fb::PlanT plan;
  plan.model = "test";
  plan.producer = "test";
  plan.target = "cpu";
  plan.precision = "fp32";
  return plan;
}

inline std::vector<std::byte> metadata(const fb::PlanT& plan) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &plan));
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {begin, begin + builder.GetSize()};
}

inline std::vector<std::byte> finish(const fb::PlanT& plan, const std::vector<float>& constants = {}) {
  package::ConstantSection section;
  if (!constants.empty()) section.add(std::as_bytes(std::span(constants)));
  return package::package_to_memory(metadata(plan), section);
}

// y = (a + b) * w + 1 in two launches over a symbolic N; the second works in place of the first's scratch.
inline fb::PlanT vector_plan() {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("N", 0, 1 << 24));
  const E n = E::symbol(0);
  plan.buffers.push_back(buffer("a", fb::BufferKind::input, n * 4));
  plan.buffers.push_back(buffer("b", fb::BufferKind::input, n * 4));
  plan.buffers.push_back(constant("w", 0, 16));
  plan.buffers.push_back(arena_buffer("sum", n * 4, 0, 0, 1));
  plan.buffers.push_back(arena_buffer("scaled", n * 4, 0, 1, 2, 3));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, n * 4));
  plan.programs.push_back(program("vector", R"(
kernel void add(global const float* a, long a0, global const float* b, long b0, global float* y, long y0) {
  size_t i = get_global_id(0);
  y[y0 + i] = a[a0 + i] + b[b0 + i];
}
kernel void scale(global const float* x, long x0, global const float* w, long w0, global float* y, long y0) {
  size_t i = get_global_id(0);
  y[y0 + i] = x[x0 + i] * w[w0 + i % 4];
}
kernel void plus(global const float* x, long x0, global float* y, long y0, int addend) {
  size_t i = get_global_id(0);
  y[y0 + i] = x[x0 + i] + (float)addend;
}
)"));
  auto predict = entry("predict");
  predict->inputs.push_back(binding("a", 0, {n}));
  predict->inputs.push_back(binding("b", 1, {n}));
  predict->outputs.push_back(binding("y", 5, {n}));
  predict->steps.push_back(launch("add", 0, {n}, {1}, reads(0), reads(1), writes(3)));
  predict->steps.push_back(launch("scale", 0, {n}, {1}, reads(3), reads(2), writes(4)));
  predict->steps.push_back(launch("plus", 0, {n}, {1}, reads(4), writes(5), value(fb::ArgKind::int32, 1)));
  plan.entries.push_back(std::move(predict));
  return plan;
}

inline std::vector<std::byte> vector_plan_bytes() { return finish(vector_plan(), {1, 2, 3, 4}); }

}  // namespace oclc::test
