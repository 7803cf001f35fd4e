#include "tools/oclrun/training/verify_training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/oclrun/inputs.h"

namespace oclc::oclrun {
namespace {

using nlohmann::json;

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

double relative(double found, double reference) {
  return std::isfinite(found) ? std::abs(found - reference) / std::abs(reference) : INFINITY;
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

// Of a shape without symbols, "[64, 3, 7, 7]".
std::size_t elements(const char* shape) {
  std::size_t product = 1;
  for (const char* at = shape + 1; *at && *at != ']';) {
    char* end = nullptr;
    product *= static_cast<std::size_t>(std::strtoull(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
  }
  return product;
}

// The tensor that deviates most.
struct Worst {
  double deviation = 0;
  std::string name;

  void add(const std::string& tensor, double its) {
    if (!name.empty() && its <= deviation) return;
    deviation = its;
    name = tensor;
  }
  // "gradients, 32 of 32, most in 'conv1.weight'"
  std::string text(const std::string& what, std::size_t compared, std::size_t all) const {
    return what + ", " + std::to_string(compared) + " of " + std::to_string(all) + ", most in '" + name + "'";
  }
};

class TrainingVerifier {
 public:
  TrainingVerifier(Runner& runner, const rt::Plan& plan, std::string path)
      : runner_(runner), plan_(plan), path_(std::move(path)), reference_(json::parse(io::read_file(path_, 1 << 26))) {}

  Verdict run() {
    const json& losses = reference_.at("losses");
    const json& pytorch = reference_.at("pytorch_float32");
    remember_parameters();
    for (std::size_t step = 0; step < losses.size(); ++step) {
      train(static_cast<int>(step));
      const double wanted = losses[step].get<double>();
      const double theirs = relative(pytorch.at("losses").at(step).get<double>(), wanted);
      judge("step " + std::to_string(step), "loss", relative(loss(), wanted), theirs, std::max(10 * theirs, 2e-5));
      if (step == 0) gradients(pytorch.at("worst_gradient_norm_deviation").get<double>());
    }
    changes(pytorch.at("worst_parameter_change_deviation").get<double>());
    if (reference_.contains("running_norms")) statistics();
    return std::move(verdict_);
  }

 private:
  void judge(std::string set, std::string what, double deviation, double theirs, double limit) {
    OutputVerdict row;
    row.set = std::move(set);
    row.output = what + " (PyTorch " + scientific(theirs) + ", limit " + scientific(limit) + ")";
    row.difference.max_rel = deviation;
    row.passed = deviation <= limit;
    verdict_.passed = verdict_.passed && row.passed;
    verdict_.worst.max_rel = std::max(verdict_.worst.max_rel, deviation);
    verdict_.outputs.push_back(std::move(row));
  }

  void train(int step) {
    std::vector<io::Tensor> inputs;
    for (const oclc_binding_info& input : runner_.inputs()) {
      const bool is_label = std::string(input.name) == "labels";
      json spec = reference_.at(is_label ? "labels" : "input");
      spec["name"] = input.name;
      spec["dtype"] = spec.contains("limit") ? "int64" : "float32";
      spec["seed"] = (is_label ? 7500 : 7000) + step;
      inputs.push_back(case_tensor(spec, {}, path_));
    }
    runner_.bind({}, std::move(inputs));
    runner_.run();
  }

  double loss() const {
    for (const io::Tensor& y : runner_.results()) {
      if (y.name == "loss" && y.dtype == OCLC_F32 && y.elements() == 1) {
        float value = 0;
        std::memcpy(&value, y.data.data(), sizeof value);
        return static_cast<double>(value);
      }
    }
    throw io::FileError(io::FileProblem::contents, path_ + ": wanted an entry with the output 'loss', found none");
  }

  std::optional<std::vector<double>> variable(const std::string& name) {
    for (const oclc_binding_info& v : plan_.variables()) {
      if (name != v.name) continue;
      std::vector<float> values(elements(v.shape_text));
      runner_.session().read_variable(name, values.data(), values.size() * sizeof(float));
      return std::vector<double>(values.begin(), values.end());
    }
    return std::nullopt;
  }

  void remember_parameters() {
    for (const auto& [name, reference] : reference_.at("parameter_change_norms").items()) {
      if (auto values = variable(name)) before_[name] = std::move(*values);
    }
  }

  // Gradient of the first step: what the moments, which were zero, have become.
  std::optional<std::vector<double>> first_gradient(const std::string& name) {
    if (auto moment = variable(name + "/momentum")) {
      const double decay = reference_.value("weight_decay", 0.0);
      const auto& parameter = before_.at(name);
      for (std::size_t i = 0; i < moment->size(); ++i) (*moment)[i] -= decay * parameter[i];
      return moment;
    }
    auto mean = variable(name + "/mean");
    if (mean) {
      for (double& v : *mean) v /= 1 - reference_.value("beta1", 0.9);
    }
    return mean;
  }

  void gradients(double theirs) {
    Worst worst;
    std::size_t compared = 0;
    const json& norms = reference_.at("first_step_gradient_norms");
    for (const auto& [name, reference] : norms.items()) {
      if (!before_.count(name)) continue;
      const auto gradient = first_gradient(name);
      if (!gradient) continue;
      ++compared;
      worst.add(name, relative(norm(*gradient), reference.get<double>()));
    }
    if (compared == 0) worst.deviation = INFINITY;
    judge("step 0", worst.text("gradients", compared, norms.size()), worst.deviation, theirs, std::max(4 * theirs, 1e-5));
  }

  void changes(double theirs) {
    Worst worst;
    std::size_t compared = 0;
    const json& norms = reference_.at("parameter_change_norms");
    for (const auto& [name, reference] : norms.items()) {
      const auto old = before_.find(name);
      auto now = variable(name);
      if (old == before_.end() || !now) continue;
      for (std::size_t i = 0; i < now->size(); ++i) (*now)[i] -= old->second[i];
      ++compared;
      worst.add(name, relative(norm(*now), reference.get<double>()));
    }
    judge("after the last step", worst.text("changes", compared, norms.size()), worst.deviation, theirs,
          std::max(4 * theirs, 1e-4));
  }

  void statistics() {
    Worst worst;
    const json& norms = reference_.at("running_norms");
    for (const auto& [name, reference] : norms.items()) {
      const auto values = variable(name);
      worst.add(name, values ? relative(norm(*values), reference.get<double>()) : INFINITY);
    }
    if (!norms.empty()) {
      const double theirs = reference_.at("pytorch_float32").at("worst_parameter_change_deviation").get<double>();
      judge("after the last step", worst.text("running statistics", norms.size(), norms.size()), worst.deviation, theirs,
            std::max(theirs, 1e-4));
    }
  }

  Runner& runner_;
  const rt::Plan& plan_;
  const std::string path_;
  const json reference_;
  Verdict verdict_;
  std::map<std::string, std::vector<double>> before_;
};

}  // namespace

Verdict verify_training(Runner& runner, const rt::Plan& plan, const std::string& folder) {
  const std::string path = folder + "/train.json";
  try {
    return TrainingVerifier(runner, plan, path).run();
  } catch (const json::exception& error) {
    throw io::FileError(io::FileProblem::contents, path + ": not a training reference: " + error.what());
  }
}

}  // namespace oclc::oclrun
