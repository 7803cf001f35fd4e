// What an attribute may look like.
#pragma once
#include <string>
#include <string_view>

namespace oclc_onnx {
class AttributeProto;
}

namespace oclc::onnx {

// Throws unless the attribute's type and the field that holds its value agree. `name` says where it stands. References to a
// function's attributes are allowed `in_function` only.
void check_attribute_form(const oclc_onnx::AttributeProto& attribute, const std::string& name, bool in_function);

// The number of the attribute's type (AttributeProto::AttributeType); of old files that do not say it, by the field that is
// used.
int attribute_type(const oclc_onnx::AttributeProto& attribute);
std::string_view attribute_type_name(int type);  // "an integer"

// Whether the attribute holds a zero, an empty text or an empty list: what leaving it out mostly means.
bool is_zero(const oclc_onnx::AttributeProto& attribute);

}  // namespace oclc::onnx
