#include "frontends/pt2/import.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/support/error.h"
#include "frontends/pt2/archive.h"
#include "frontends/pt2/lower.h"
#include "frontends/pt2/table.h"

namespace oclc {
namespace {

using nlohmann::json;

json parsed(const pt2::Archive& archive, std::string_view member) {
  json document = json::parse(archive.text(member), nullptr, false);
  if (document.is_discarded() || !document.is_object()) pt2::fail(fmt::format("JSON in '{}'", member), "something else");
  return document;
}

// A member that is a whole number; -1: it is something else, or missing.
std::int64_t integer(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : -1;
}

// Weights and constants by their names in the model.
class Weights {
 public:
  explicit Weights(std::shared_ptr<const pt2::Archive> archive)
      : archive_(std::move(archive)),
        weights_(parsed(*archive_, "data/weights/model_weights_config.json")),
        constants_(parsed(*archive_, "data/constants/model_constants_config.json")) {}

  std::optional<HostTensor> find(const pt2::ProgramInput& input) const {
    if (input.kind == pt2::ProgramInput::Kind::user) return std::nullopt;
    for (const auto& [config, folder] : {std::pair{&weights_, "data/weights/"}, std::pair{&constants_, "data/constants/"}}) {
      const auto list = config->find("config");
      if (list == config->end() || !list->contains(input.of_model)) continue;
      const json& entry = list->at(input.of_model);
      try {
        return tensor(entry, folder, input.of_model);
      } catch (const json::exception&) {  // a value of another kind
        pt2::fail(fmt::format("'{}' described as torch.export.save does", input.of_model), entry.dump().substr(0, 200));
      }
    }
    pt2::fail(fmt::format("the value of '{}' in the file", input.of_model), "none");
  }

 private:
  HostTensor tensor(const json& entry, const std::string& folder, const std::string& name) const {
    const auto text = [&](const char* key) { return entry.value(key, std::string()); };
    if (entry.value("use_pickle", true)) pt2::fail(fmt::format("raw bytes of '{}'", name), "a pickle, which is never opened");
    const json meta = entry.value("tensor_meta", json::object());
    const auto dtype = pt2::dtype_of_torch(integer(meta, "dtype"));
    if (!dtype) pt2::fail(fmt::format("'{}' of an element type that the compiler has", name), meta.dump().substr(0, 100));
    std::vector<std::int64_t> shape;
    std::int64_t step = 1, count = 1;
    for (const json& size : meta.value("sizes", json::array())) {
      shape.push_back(integer(size, "as_int"));
      if (shape.back() < 0 || __builtin_mul_overflow(count, shape.back(), &count) || count > (std::int64_t{1} << 48))
        pt2::fail(fmt::format("sizes of '{}'", name), meta.dump().substr(0, 200));
    }
    const json strides = meta.value("strides", json::array());
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (i < strides.size() && shape[i] != 1 && count > 0 && integer(strides[i], "as_int") != step)
        pt2::fail(fmt::format("'{}' in rows", name), "a strided tensor", "call .contiguous() on it before exporting");
      step *= shape[i];
    }
    const std::span<const std::byte> bytes = archive_->bytes(folder + text("path_name"));
    const auto needed = static_cast<std::size_t>(count) * size_bytes(*dtype);
    if (bytes.size() < needed) pt2::fail(fmt::format("{} bytes of '{}'", needed, name), fmt::format("{}", bytes.size()));
    return HostTensor(*dtype, shape, bytes.data(), archive_);
  }

  std::shared_ptr<const pt2::Archive> archive_;
  json weights_, constants_;
};

}  // namespace

bool is_pt2(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  char begin[4] = {};
  return in.read(begin, 4) && std::string_view(begin, 4) == std::string_view("PK\x03\x04", 4);
}

std::unique_ptr<Module> import_pt2(const std::filesystem::path& file, const Pt2Options& options) {
  const auto archive = std::make_shared<const pt2::Archive>(file);
  const Weights weights(archive);
  const pt2::Program program = pt2::parse_program(archive->text("models/model.json"), options.dims);
  std::unique_ptr<Module> module = pt2::lower_program(
      program, [&](const pt2::ProgramInput& input) { return weights.find(input); }, options);
  module->name = file.stem().string();
  return module;
}

std::unique_ptr<Module> import_pt2_graph(std::string_view json, const FindConstant& constant, const Pt2Options& options) {
  const auto weight = [&](const pt2::ProgramInput& input) { return constant ? constant(input.name) : std::nullopt; };
  return pt2::lower_program(pt2::parse_program(json, options.dims), weight, options);
}

std::optional<DType> dtype_of_torch(std::int64_t number) { return pt2::dtype_of_torch(number); }

std::vector<std::string_view> pt2_operators() { return pt2::operators(); }

}  // namespace oclc
