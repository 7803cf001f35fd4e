// Writes small ONNX models for tests.
#pragma once
#include <oclc_onnx.pb.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontends/onnx/import.h"

namespace oclc::test {

using oclc_onnx::AttributeProto;
using oclc_onnx::GraphProto;
using oclc_onnx::ModelProto;
using oclc_onnx::NodeProto;
using oclc_onnx::TensorProto;
using oclc_onnx::ValueInfoProto;

// A folder that goes away with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "oclc-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// A dimension: a number, or a name.
struct Dim {
  Dim(std::int64_t value) : value(value) {}  // NOLINT
  Dim(int value) : value(value) {}           // NOLINT
  Dim(const char* name) : name(name) {}      // NOLINT
  std::int64_t value = 0;
  std::string name;
};

inline void set_type(ValueInfoProto& value, const std::string& name, const std::vector<Dim>& shape,
                     int type = TensorProto::FLOAT) {
  value.set_name(name);
  auto* tensor = value.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const Dim& dim : shape) {
    auto* d = tensor->mutable_shape()->add_dim();
    if (dim.name.empty()) {
      d->set_dim_value(dim.value);
    } else {
      d->set_dim_param(dim.name);
    }
  }
}

inline void set_floats(TensorProto& t, const std::string& name, const std::vector<std::int64_t>& dims,
                       const std::vector<float>& values) {
  t.set_name(name);
  t.set_data_type(TensorProto::FLOAT);
  for (const std::int64_t d : dims) t.add_dims(d);
  t.set_raw_data(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

inline void set_ints(TensorProto& t, const std::string& name, const std::vector<std::int64_t>& dims,
                     const std::vector<std::int64_t>& values) {
  t.set_name(name);
  t.set_data_type(TensorProto::INT64);
  for (const std::int64_t d : dims) t.add_dims(d);
  for (const std::int64_t v : values) t.add_int64_data(v);
}

inline AttributeProto& attribute(NodeProto& node, const std::string& name, AttributeProto::AttributeType type) {
  AttributeProto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(type);
  return *a;
}
inline void set_int(NodeProto& node, const std::string& name, std::int64_t value) {
  attribute(node, name, AttributeProto::INT).set_i(value);
}
inline void set_float(NodeProto& node, const std::string& name, float value) {
  attribute(node, name, AttributeProto::FLOAT).set_f(value);
}
inline void set_text(NodeProto& node, const std::string& name, const std::string& value) {
  attribute(node, name, AttributeProto::STRING).set_s(value);
}
inline void set_list(NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  AttributeProto& a = attribute(node, name, AttributeProto::INTS);
  for (const std::int64_t v : values) a.add_ints(v);
}

// A model with one graph.
class Writer {
 public:
  explicit Writer(std::int64_t opset = 17) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("g");
  }

  GraphProto& graph() { return *model.mutable_graph(); }
  Writer& input(const std::string& name, const std::vector<Dim>& shape, int type = TensorProto::FLOAT) {
    set_type(*graph().add_input(), name, shape, type);
    return *this;
  }
  Writer& output(const std::string& name, const std::vector<Dim>& shape, int type = TensorProto::FLOAT) {
    set_type(*graph().add_output(), name, shape, type);
    return *this;
  }
  // An output of undeclared type.
  Writer& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  Writer& floats(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
    set_floats(*graph().add_initializer(), name, dims, values);
    return *this;
  }
  Writer& ints(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& values) {
    set_ints(*graph().add_initializer(), name, dims, values);
    return *this;
  }
  static void fill(NodeProto& node, const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::string& name = {}) {
    node.set_op_type(op);
    for (const auto& i : inputs) node.add_input(i);
    for (const auto& o : outputs) node.add_output(o);
    if (!name.empty()) node.set_name(name);
  }
  NodeProto& node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                  const std::string& name = {}) {
    NodeProto& n = *graph().add_node();
    fill(n, op, inputs, outputs, name);
    return n;
  }

  std::string bytes() const { return model.SerializeAsString(); }
  std::unique_ptr<Module> import(const ImportOptions& options = {}) const { return import_bytes(bytes(), options); }
  // The error's text; empty if there is none.
  std::string refusal() const {
    try {
      import();
    } catch (const CompileError& error) {
      return error.what();
    }
    return {};
  }
  static std::unique_ptr<Module> import_bytes(const std::string& bytes, const ImportOptions& options = {}) {
    return import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, options);
  }

  ModelProto model;
};

}  // namespace oclc::test
