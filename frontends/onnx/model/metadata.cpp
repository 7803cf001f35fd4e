#include "frontends/onnx/model/metadata.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <iterator>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/import.h"

namespace oclc::onnx {
namespace {

// Empty: a plan can keep it.
std::string problem_of(const std::vector<Property>& kept, const std::string& name, const std::string& value,
                       const ImportLimits& limits) {
  if (name.empty()) return "has no name";
  if (std::any_of(kept.begin(), kept.end(), [&](const Property& p) { return p.name == name; })) return "is there twice";
  if (std::ssize(kept) >= limits.properties) return fmt::format("is one of more than {}", limits.properties);
  if (std::ssize(name) > limits.name_bytes || std::ssize(value) > limits.property_bytes)
    return fmt::format("has {} bytes, plans keep names of {} and values of {}", name.size() + value.size(), limits.name_bytes,
                       limits.property_bytes);
  if (name.find('\0') != name.npos || value.find('\0') != value.npos) return "contains a NUL";
  return "";
}

}  // namespace

std::vector<Property> metadata_of(const oclc_onnx::ModelProto& model, const ImportLimits& limits,
                                  const std::function<void(const std::string&)>& warn) {
  std::vector<Property> kept;
  const auto keep = [&](const std::string& name, const std::string& value) {
    const std::string problem = problem_of(kept, name, value, limits);
    if (problem.empty())
      kept.push_back({name, value});
    else if (warn)
      warn(fmt::format("the model's property '{}' {}: it is left out", printable(name.substr(0, 64)), problem));
  };
  for (const auto& property : model.metadata_props()) keep(property.key(), property.value());
  const std::string producer = model.producer_name() + (model.producer_version().empty() ? "" : " " + model.producer_version());
  if (!model.producer_name().empty()) keep("onnx.producer", producer);
  if (!model.domain().empty()) keep("onnx.domain", model.domain());
  if (model.model_version() != 0) keep("onnx.version", std::to_string(model.model_version()));
  if (!model.doc_string().empty()) keep("onnx.doc", model.doc_string());
  return kept;
}

}  // namespace oclc::onnx
