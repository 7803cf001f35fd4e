#include "frontends/onnx/attributes.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <vector>

#include "frontends/onnx/fail.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::AttributeProto;

// Types whose fields hold something.
std::vector<int> used_fields(const AttributeProto& a) {
  std::vector<int> used;
  const auto add = [&](bool holds, int type) {
    if (holds) used.push_back(type);
  };
  add(a.has_f(), AttributeProto::FLOAT);
  add(a.has_i(), AttributeProto::INT);
  add(a.has_s(), AttributeProto::STRING);
  add(a.has_t(), AttributeProto::TENSOR);
  add(a.has_g(), AttributeProto::GRAPH);
  add(a.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR);
  add(a.has_tp(), AttributeProto::TYPE_PROTO);
  add(a.floats_size() > 0, AttributeProto::FLOATS);
  add(a.ints_size() > 0, AttributeProto::INTS);
  add(a.strings_size() > 0, AttributeProto::STRINGS);
  add(a.tensors_size() > 0, AttributeProto::TENSORS);
  add(a.graphs_size() > 0, AttributeProto::GRAPHS);
  add(a.sparse_tensors_size() > 0, AttributeProto::SPARSE_TENSORS);
  add(a.type_protos_size() > 0, AttributeProto::TYPE_PROTOS);
  return used;
}

}  // namespace

std::string_view attribute_type_name(int type) {
  switch (type) {
    case AttributeProto::FLOAT:
      return "a real number";
    case AttributeProto::INT:
      return "an integer";
    case AttributeProto::STRING:
      return "a text";
    case AttributeProto::TENSOR:
      return "a tensor";
    case AttributeProto::GRAPH:
      return "a graph";
    case AttributeProto::SPARSE_TENSOR:
      return "a sparse tensor";
    case AttributeProto::TYPE_PROTO:
      return "a type";
    case AttributeProto::FLOATS:
      return "a list of real numbers";
    case AttributeProto::INTS:
      return "a list of integers";
    case AttributeProto::STRINGS:
      return "a list of texts";
    case AttributeProto::TENSORS:
      return "a list of tensors";
    case AttributeProto::GRAPHS:
      return "a list of graphs";
    case AttributeProto::SPARSE_TENSORS:
      return "a list of sparse tensors";
    case AttributeProto::TYPE_PROTOS:
      return "a list of types";
    default:
      return "nothing";
  }
}

int attribute_type(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  const std::vector<int> used = used_fields(attribute);
  return used.empty() ? AttributeProto::UNDEFINED : used.front();
}

bool is_zero(const AttributeProto& a) {
  const bool list = a.floats_size() > 0 || a.ints_size() > 0 || a.strings_size() > 0 || a.tensors_size() > 0 ||
                    a.graphs_size() > 0 || a.sparse_tensors_size() > 0 || a.type_protos_size() > 0;
  return !list && a.f() == 0 && a.i() == 0 && a.s().empty() && !a.has_t() && !a.has_g() && !a.has_sparse_tensor() &&
         !a.has_tp();
}

void check_attribute_form(const AttributeProto& attribute, const std::string& name, bool in_function) {
  const std::vector<int> used = used_fields(attribute);
  if (!attribute.ref_attr_name().empty()) {
    const std::string reference = fmt::format("a reference to attribute '{}'", printable(attribute.ref_attr_name()));
    if (!in_function) fail(name + " with a value, outside of functions", reference);
    if (!used.empty())
      fail(name + " with a value or a reference", fmt::format("{} and {}", attribute_type_name(used.front()), reference));
    return;
  }
  const int type = attribute_type(attribute);
  if (type == AttributeProto::UNDEFINED) fail(name + " with a value", "none");
  for (const int field : used) {
    if (field != type)
      fail(fmt::format("{} as {}, the type it declares", name, attribute_type_name(type)),
           std::string(attribute_type_name(field)));
  }
  // Numbers, texts and lists may be left out where they are zero or empty.
  if (used.empty() &&
      (type == AttributeProto::TENSOR || type == AttributeProto::GRAPH || type == AttributeProto::SPARSE_TENSOR)) {
    fail(fmt::format("{} as {}, the type it declares", name, attribute_type_name(type)), "nothing");
  }
}

}  // namespace oclc::onnx
