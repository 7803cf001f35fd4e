// A plan by hand that has no kernels: the host drops the word "stop" from x [N] and turns the rest to upper case.
#pragma once
#include "tests/runtime/plan_builder.h"

namespace oclc::test {

inline std::unique_ptr<fb::HostOperandT> operand(std::unique_ptr<fb::ArgT> at, const std::vector<E>& shape) {
  auto o = std::make_unique<fb::HostOperandT>();
  o->at = std::move(at);
  for (const E& e : shape) o->shape.push_back(e.ptr());
  return o;
}

// y [N] holds the words that are left first; n is their number, which is also read as the dimension `kept`.
inline fb::PlanT string_plan() {
  fb::PlanT plan = new_plan();
  plan.strings = {""};
  plan.symbols.push_back(symbol("N", 1, 1 << 24));
  const E n = E::symbol(0);
  auto kept = symbol("kept", 0, 1 << 24, true);
  kept->upper = n.ptr();
  plan.symbols.push_back(std::move(kept));
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, n * 4, fb::DType::string_));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, n * 4, fb::DType::string_));
  plan.buffers.push_back(arena_buffer("count", 8, 0, 0, 1));
  plan.buffers.back()->dtype = fb::DType::i64;
  plan.buffers.push_back(buffer("n", fb::BufferKind::output, 8, fb::DType::i64));
  auto predict = entry("predict");
  predict->inputs.push_back(binding("x", 0, {n}, fb::DType::string_));
  predict->outputs.push_back(binding("y", 1, {n}, fb::DType::string_));
  predict->outputs.push_back(binding("n", 3, {1}, fb::DType::i64));
  for (const int count : {2, 3}) {
    fb::HostT host;
    host.op = "string_normalize";
    host.integers = {1, 2};
    host.texts = {"stop"};
    host.nodes = {"words"};
    host.inputs.push_back(operand(reads(0), {n}));
    host.outputs.push_back(operand(writes(1), {n}));
    host.outputs.push_back(operand(writes(count), {1}));
    auto step = std::make_unique<fb::StepT>();
    step->body.Set(std::move(host));
    predict->steps.push_back(std::move(step));
  }
  fb::ReadT read;
  read.from = reads(2);
  read.dims = {1};
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(read));
  predict->steps.push_back(std::move(step));
  plan.entries.push_back(std::move(predict));
  return plan;
}

}  // namespace oclc::test
