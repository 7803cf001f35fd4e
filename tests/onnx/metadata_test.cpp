// What an ONNX file says of its model, in the module and so in the plan.
#include <doctest/doctest.h>

#include "frontends/onnx/model/metadata.h"
#include "tests/onnx/onnx_model.h"

using namespace oclc;
using namespace oclc::test;

namespace {

void add(ModelProto& model, const std::string& name, const std::string& value) {
  auto* property = model.add_metadata_props();
  property->set_key(name);
  property->set_value(value);
}

struct Read {
  std::vector<std::string> texts;  // "name=value"
  std::vector<std::string> warnings;
};

Read read(const ModelProto& model) {
  Read result;
  for (const Property& p : onnx::metadata_of(model, {}, [&](const std::string& text) { result.warnings.push_back(text); }))
    result.texts.push_back(p.name + "=" + p.value);
  return result;
}

}  // namespace

TEST_CASE("a model's properties keep their names, its fields are onnx.producer, onnx.domain, onnx.version and onnx.doc") {
  ModelProto model;
  add(model, "names", "{0: 'cat'}");
  model.set_producer_name("pytorch");
  model.set_producer_version("2.1.0");
  model.set_domain("org.example");
  model.set_model_version(7);
  model.set_doc_string("tells cats from dogs");
  const Read result = read(model);
  CHECK(result.texts == std::vector<std::string>{"names={0: 'cat'}", "onnx.producer=pytorch 2.1.0", "onnx.domain=org.example",
                                                 "onnx.version=7", "onnx.doc=tells cats from dogs"});
  CHECK(result.warnings.empty());
}

TEST_CASE("a model that says nothing has no properties") { CHECK(read(ModelProto()).texts.empty()); }

TEST_CASE("properties that no plan can keep are left out, with a warning each") {
  ModelProto model;
  add(model, "a", "1");
  add(model, "a", "2");
  add(model, "", "3");
  add(model, "nul", std::string("x\0y", 3));
  add(model, "long", std::string(static_cast<std::size_t>(ImportLimits().property_bytes + 1), 'x'));
  const Read result = read(model);
  CHECK(result.texts == std::vector<std::string>{"a=1"});
  CHECK(result.warnings ==
        std::vector<std::string>{
            "the model's property 'a' is there twice: it is left out", "the model's property '' has no name: it is left out",
            "the model's property 'nul' contains a NUL: it is left out",
            "the model's property 'long' has 1048581 bytes, plans keep names of 4096 and values of 1048576: it is left out"});
}
