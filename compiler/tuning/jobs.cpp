#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "compiler/ir/op_def.h"
#include "compiler/ir/text.h"
#include "compiler/ops/builder.h"
#include "compiler/support/error.h"
#include "compiler/tuning/search.h"

namespace oclc {
namespace {

constexpr std::int64_t kLargestConstant = std::int64_t{1} << 28;  // elements

HostTensor random_constant(const TensorType& type) {
  std::vector<std::int64_t> shape;
  for (const Expr& e : type.shape) shape.push_back(e.value());
  HostTensor tensor(type.dtype, std::move(shape));
  std::mt19937 random(7);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, static_cast<double>(random()) / 2147483648.0 - 1);
  return tensor;
}

Value* pooled(Builder& b, Value* x) {
  const Ints ones(x->type.rank() - 2, 1);
  b.set_source("around");
  return b.max_pool(x, {.kernel = ones, .strides = ones, .dilations = ones, .pads = Ints(2 * ones.size(), 0)});
}

// Constants stay constants; of other operands the graph's inputs stand for them.
std::shared_ptr<const Graph> alone(const Node& node) {
  auto graph = std::make_shared<Graph>();
  graph->name = "predict";
  Builder b(*graph, std::string(kTimedNode));
  const bool conv = node.op->name == "conv";
  std::map<const Value*, Value*> made;
  std::vector<Value*> operands;
  for (const Value* input : node.inputs) {
    if (!input) {
      operands.push_back(nullptr);
      continue;
    }
    Value*& value = made[input];
    if (!value) {
      b.set_source(std::string(kTimedNode));
      value = constant_of(input) ? b.constant(random_constant(input->type))
                                 : graph->add_input(fmt::format("x{}", made.size() - 1), input->type);
      if (conv && input == node.inputs[0] && input->producer && input->type.rank() > 2) value = pooled(b, value);
    }
    operands.push_back(value);
  }
  Value* y = graph->add(*node.op, std::move(operands), node.attributes, std::string(kTimedNode))->output();
  graph->add_output("y", conv && y->type.rank() > 2 ? pooled(b, y) : y);
  return graph;
}

bool is_timed(const Node& node) {
  if (node.op->name != "conv" && node.op->name != "matmul") return false;
  return node.output()->type.is_static() && std::all_of(node.inputs.begin(), node.inputs.end(), [](const Value* v) {
           return !v || (v->type.dtype == DType::f32 && v->type.is_static() && v->type.elements().value() > 0 &&
                         v->type.elements().value() <= kLargestConstant);
         });
}

}  // namespace

std::vector<TuningJob> tuning_jobs(const Module& module) {
  struct Found {
    TuningJob job;
    std::string first;
    double flops;
    int count;
  };
  std::vector<Found> list;
  std::map<std::string, std::size_t> seen;  // by the graph's text
  for (const auto& entry : module.entries) {
    for (const Node* node : entry->nodes()) {
      if (!is_timed(*node)) continue;
      TuningJob job{"", alone(*node)};
      const auto [at, fresh] = seen.emplace(print_graph(*job.graph), list.size());
      if (!fresh) {
        ++list[at->second].count;
        continue;
      }
      job.label = fmt::format("{} {} x {}", node->op->name, node->inputs[0]->type.text(), node->inputs[1]->type.text());
      const double flops = static_cast<double>(node->op->cost(*node).flops.constant().value_or(0));
      list.push_back({std::move(job), node->source, flops, 1});
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Found& a, const Found& b) { return a.flops > b.flops; });
  std::vector<TuningJob> jobs;
  for (Found& f : list) {
    if (!f.first.empty()) f.job.label += fmt::format(" ({})", f.first);
    if (f.count > 1) f.job.label += fmt::format(", {} times", f.count);
    jobs.push_back(std::move(f.job));
  }
  return jobs;
}

TuningJob product_job(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  auto graph = std::make_shared<Graph>();
  graph->name = "predict";
  Builder b(*graph, std::string(kTimedNode));
  Value* a = graph->add_input("x0", {DType::f32, {Expr(rows), Expr(depth)}});
  Value* w = b.constant(random_constant({DType::f32, {Expr(depth), Expr(columns)}}));
  graph->add_output("y", b.matmul(a, w));
  return {fmt::format("product {}x{}x{}", rows, depth, columns), graph};
}

}  // namespace oclc
