// A network written in C++: inputs, parameters and operators become the graph of a module's entry.
//
//   nn::Network net("mlp", nn::initial_parameters());
//   nn::Tensor x = net.input("x", DType::f32, {net.symbol("N"), 784});
//   nn::Tensor h = relu(linear(net, "hidden", x, 128));
//   net.output("logits", linear(net, "head", h, 10));
//   std::shared_ptr<Module> module = net.finish();
#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/builder.h"
#include "frontends/cpp/parameters.h"
#include "frontends/op/custom_op.h"

namespace oclc::nn {

class Network;

// A value of a network under construction: a handle, cheap to copy, valid as long as its network. An empty handle stands for an
// optional tensor that is left out. Operators broadcast as numpy's; numbers take the tensor's element type.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Network* network, Value* value) : network_(network), value_(value) {}

  explicit operator bool() const { return value_ != nullptr; }
  // CompileError if the handle is empty, as in all that follow but value().
  Network& network() const;
  Value* value() const { return value_; }
  DType dtype() const;
  const Shape& shape() const;
  std::size_t rank() const { return shape().size(); }
  // Axis from the end if negative.
  const Expr& dim(std::int64_t axis) const;
  // The same where the size must be known (a layer's width); CompileError if it is symbolic.
  std::int64_t size(std::int64_t axis) const;

  Tensor reshape(Shape shape) const;
  Tensor transpose(Ints perm) const;
  Tensor slice(std::int64_t axis, const Expr& start, const Expr& size) const;
  Tensor cast(DType dtype) const;
  Tensor mean(const Ints& axes, bool keepdims = false) const;
  Tensor sum(const Ints& axes, bool keepdims = false) const;
  Tensor max(const Ints& axes, bool keepdims = false) const;
  Tensor min(const Ints& axes, bool keepdims = false) const;

 private:
  Network* network_ = nullptr;
  Value* value_ = nullptr;
};

// What a network is for: its parameters are constants of the plan, or variables that training moves (then batch_norm and
// dropout stay operators, and finish() gives what build_training of compiler/training/training.h takes).
enum class Use { inference, training };

class Network {
 public:
  Network(std::string name, Parameters parameters, Use use = Use::inference);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // A dimension that is bound when the plan runs; one of the same name is the same.
  Expr symbol(const std::string& name, std::int64_t lo = 1, std::int64_t hi = kUnbounded);
  // CompileError if there is an input of that name.
  Tensor input(std::string name, DType dtype, Shape shape);
  // CompileError if there is an output of that name.
  void output(std::string name, const Tensor& tensor);
  // Asks the source of parameters for `name` inside the open scopes. The same tensor if it was asked for before (shared
  // weights).
  Tensor parameter(std::string_view name, const Ints& shape);
  Tensor constant(HostTensor tensor);
  Tensor scalar(DType dtype, double value);
  Tensor tensor(Value* value) { return {this, value}; }

  // Operators of files, which call() finds by name: net.add_ops(load_ops("swoosh.cl")). CompileError if there is one of the
  // name.
  void add_ops(CustomOps ops) { ops_.add(std::move(ops)); }
  // All outputs of the operator, and the first. An empty tensor is an optional input that is left out; attributes that are left
  // out have their defaults.
  std::vector<Tensor> call_all(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attributes = {});
  Tensor call(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attributes = {}) {
    return call_all(op, inputs, attributes).at(0);
  }

  // `tensor`; CompileError naming the open scopes and `op` if it is empty or of another network.
  const Tensor& operand(std::string_view op, const Tensor& tensor) const;

  Use use() const { return use_; }

  // Adds operators under the name of the open scopes.
  Builder& builder() { return builder_; }

  // Names what is added during its life: scopes nest, and join with dots.
  class Scope {
   public:
    Scope(Network& network, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Network& network_;
    std::size_t outer_;
  };
  std::string path(std::string_view name = {}) const;

  // The finished module; the network is empty afterwards. Throws CompileError if it has no outputs.
  std::shared_ptr<Module> finish();

 private:
  std::shared_ptr<Module> module_;
  Parameters parameters_;
  Use use_;
  Builder builder_;
  std::string path_;
  CustomOps ops_;
  std::map<std::string, Value*, std::less<>> made_;
};

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator-(const Tensor& a);
Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false);
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis);
Tensor softmax(const Tensor& x, std::int64_t axis = -1);
// Any elementwise core operator by name (compiler/ops/elementwise.cpp); CompileError if there is none.
Tensor apply(std::string_view op, const std::vector<Tensor>& operands);

}  // namespace oclc::nn
