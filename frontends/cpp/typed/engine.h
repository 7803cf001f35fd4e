// A trainable network on a device: its module compiled in this process, one session, the state in it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "frontends/cpp/typed/plan.h"
#include "frontends/cpp/typed/training_module.h"

namespace oclc::typed {

// How the parameters of one layer move; may be changed between steps.
struct HyperParameters {
  float learning_rate = 0.1f;
  float momentum = 0;
  float l2 = 0;  // of the weights; biases are not drawn to zero
};

struct Options {
  HyperParameters hyper;              // of all layers, to begin with
  std::int64_t batch = 1;             // rows of a training step
  std::uint64_t seed = 0;             // of the initial parameters
  std::string device;                 // as oclc_device_select takes it
  std::vector<std::string> disabled;  // passes of the compiler
};

// Not for several threads at once. Throws CompileError, rt::Error, and std::invalid_argument for data of another size.
class Engine {
 public:
  Engine(std::vector<LayerSpec> layers, const Options& options)
      : layers_(std::move(layers)), batch_(options.batch), parts_(parts_of(layers_)), context_(options.device) {
    hyper_.resize(parts_.size() * 3);
    total_ = 0;
    for (const Part& part : parts_) total_ += size_of(part);
    for (std::size_t i = 0; i < layers_.size(); ++i) set_hyper(i, options.hyper);
    loops_ = total_ <= kLoopParameters;
    ModuleOptions module_options;
    module_options.batch = batch_;
    module_options.seed = options.seed;
    module_options.train_loop = loops_;
    CompileOptions compile_options;
    compile_options.disabled = options.disabled;
    plan_ = plan_for(context_, training_module(layers_, module_options), compile_options, &sources_);
    session_ = std::make_unique<rt::Session>(plan_, context_);
    predict_ = plan_.entry("predict");
    train_step_ = plan_.entry("train_step");
    if (loops_) train_ = plan_.entry("train");
  }

  std::int64_t inputs() const { return layers_.front().inputs; }
  std::int64_t outputs() const { return layers_.back().outputs; }
  std::int64_t batch() const { return batch_; }
  std::int64_t parameter_count() const { return total_; }
  std::string device_name() const { return context_.device().name; }
  // The generated kernels.
  const std::vector<GeneratedFile>& sources() const { return sources_; }
  rt::Session& session() { return *session_; }

  void set_hyper(std::size_t layer, const HyperParameters& hyper) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (parts_[p].layer != layer) continue;
      hyper_[p * 3] = hyper.learning_rate;
      hyper_[p * 3 + 1] = hyper.momentum;
      hyper_[p * 3 + 2] = parts_[p].is_bias ? 0 : hyper.l2;
    }
    hyper_changed_ = true;
  }

  void predict(std::span<const float> x, std::span<float> y) {
    const std::int64_t rows = rows_of(x.size(), inputs(), "inputs");
    wanted(y.size(), rows * outputs(), "outputs");
    session_->set_input(predict_, "x", x.data(), {rows, inputs()});
    session_->set_output(predict_, "y", y.data(), {rows, outputs()});
    session_->run(predict_);
  }

  // One step; the loss before it.
  float train_step(std::span<const float> x, std::span<const float> y) {
    wanted(x.size(), batch_ * inputs(), "inputs");
    wanted(y.size(), batch_ * outputs(), "wanted outputs");
    float loss = 0;
    session_->set_input(train_step_, "x", x.data(), {batch_, inputs()});
    session_->set_input(train_step_, "y", y.data(), {batch_, outputs()});
    send_hyper();
    session_->set_output(train_step_, "loss", &loss, {});
    session_->run(train_step_);
    return loss;
  }

  // A step for each `batch` rows, in order; the losses before each.
  std::vector<float> train(std::span<const float> xs, std::span<const float> ys) {
    const std::int64_t steps = rows_of(xs.size(), batch_ * inputs(), "inputs");
    wanted(ys.size(), steps * batch_ * outputs(), "wanted outputs");
    std::vector<float> losses(static_cast<std::size_t>(steps));
    if (steps == 0) return losses;
    if (!loops_) {
      const auto x_size = static_cast<std::size_t>(batch_ * inputs()), y_size = static_cast<std::size_t>(batch_ * outputs());
      for (std::size_t i = 0; i < losses.size(); ++i)
        losses[i] = train_step(xs.subspan(i * x_size, x_size), ys.subspan(i * y_size, y_size));
      return losses;
    }
    session_->set_input(train_, "xs", xs.data(), {steps, batch_, inputs()});
    session_->set_input(train_, "ys", ys.data(), {steps, batch_, outputs()});
    send_hyper();
    session_->set_output(train_, "losses", losses.data(), {steps});
    session_->run(train_);
    return losses;
  }

  // The weight [inputs, outputs] or the bias [outputs] of a layer.
  std::vector<float> parameter(std::size_t layer, bool is_bias) const {
    const Part& part = find(layer, is_bias);
    std::vector<float> values(static_cast<std::size_t>(size_of(part)));
    session_->read_variable(part.place.name, values.data(), values.size() * sizeof(float));
    return values;
  }
  void set_parameter(std::size_t layer, bool is_bias, std::span<const float> values) {
    const Part& part = find(layer, is_bias);
    wanted(values.size(), size_of(part), part.place.name.c_str());
    session_->write_variable(part.place.name, values.data(), values.size() * sizeof(float));
  }
  // Initial parameters, no momentum; the hyper-parameters stay.
  void reset() {
    session_->reset_state();
    hyper_changed_ = true;
  }

 private:
  // Networks beyond this train by one run a step: their steps cost far more than a launch.
  static constexpr std::int64_t kLoopParameters = 1 << 20;

  static std::int64_t size_of(const Part& part) {
    std::int64_t n = 1;
    for (const std::int64_t d : part.place.shape) n *= d;
    return n;
  }
  void send_hyper() {
    if (!hyper_changed_) return;
    session_->write_variable("hyper", hyper_.data(), hyper_.size() * sizeof(float));
    hyper_changed_ = false;
  }
  static void wanted(std::size_t found, std::int64_t count, const char* what) {
    if (found != static_cast<std::size_t>(count))
      throw std::invalid_argument("typed network: wanted " + std::to_string(count) + " numbers of " + what + ", found " +
                                  std::to_string(found));
  }
  static std::int64_t rows_of(std::size_t count, std::int64_t width, const char* what) {
    const auto n = static_cast<std::int64_t>(count);
    if (n % width != 0)
      throw std::invalid_argument("typed network: wanted a multiple of " + std::to_string(width) + " numbers of " + what +
                                  ", found " + std::to_string(n));
    return n / width;
  }
  const Part& find(std::size_t layer, bool is_bias) const {
    for (const Part& part : parts_) {
      if (part.layer == layer && part.is_bias == is_bias) return part;
    }
    throw std::invalid_argument("typed network: layer " + std::to_string(layer) + " has no parameters");
  }
  const std::vector<LayerSpec> layers_;
  const std::int64_t batch_;
  const std::vector<Part> parts_;
  std::int64_t total_ = 0;
  bool loops_ = false;
  std::vector<float> hyper_;  // [parts, 3]
  bool hyper_changed_ = true;
  std::vector<GeneratedFile> sources_;
  rt::Plan plan_;
  rt::Context context_;
  std::unique_ptr<rt::Session> session_;
  std::uint32_t predict_ = 0, train_step_ = 0, train_ = 0;
};

}  // namespace oclc::typed
