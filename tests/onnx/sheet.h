// Uses of operators in one model of one opset, beside what ONNX's specification says that they give: by examples of its text,
// or by loops written where the use is. All uses of a sheet are read, evaluated and run on the device together.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/onnx/onnx_model.h"

namespace oclc::test {

using Dims = std::vector<std::int64_t>;
using Wanted = std::function<double(std::int64_t)>;          // element of the row-major order
using Holds = std::function<bool(const HostTensor& found)>;  // of results that are not fixed to the last digit

// Numbers that differ from element to element, of at most `size`.
HostTensor noise(DType dtype, Dims shape, int seed, double size = 1);
// The values again and again.
HostTensor listed(DType dtype, Dims shape, const std::vector<double>& values);
HostTensor texts(Dims shape, const std::vector<std::string>& values);
// The row-major number of the element at `index`.
std::int64_t flat(const Dims& index, const Dims& shape);
// The index of element `i`.
Dims unflat(std::int64_t i, const Dims& shape);
Wanted of(std::vector<double> values);

class Sheet {
 public:
  explicit Sheet(std::int64_t version) : opset(version), writer_(version) {}

  const std::int64_t opset;

  // Operands: the name to give to a node.
  std::string input(const HostTensor& value);
  std::string known(const HostTensor& value);  // an initializer
  std::string known_ints(const Dims& values) { return known(HostTensor::from_ints(values)); }

  // A use of the operator. An awkward one has sizes of 1, odd sizes, other ranks than usual or no elements.
  NodeProto& use(const std::string& op, const std::vector<std::string>& inputs, bool awkward = false, int outputs = 1);
  // A node that only makes operands for uses; its result.
  std::string step(const std::string& op, const std::vector<std::string>& inputs,
                   const std::function<void(NodeProto&)>& attributes = {});
  // What result `which` of the last use is. `tolerance`: allowed difference as a part of the largest number; 0: what the type's
  // precision makes of some operations.
  void gives(DType dtype, Dims shape, Wanted wanted, int which = 0, double tolerance = 0);
  void gives_texts(Dims shape, std::vector<std::string> wanted, int which = 0);
  void gives_if(DType dtype, Dims shape, Holds holds, int which = 0);

  struct Count {
    int all = 0, awkward = 0;
  };
  const std::map<std::string, Count>& counts() const { return counts_; }

  // Reads the model, evaluates and runs it, and compares.
  void check() const;

 private:
  struct Result {
    std::string op;
    DType dtype;
    Dims shape;
    Wanted wanted;
    Holds holds;
    std::vector<std::string> texts;
    double tolerance;
  };
  void compare(const Result& result, const HostTensor& found) const;
  Result& result(DType dtype, Dims shape, int which);

  Writer writer_;
  std::vector<HostTensor> inputs_;
  std::vector<Result> results_;
  std::map<std::string, Count> counts_;
  std::vector<std::string> outputs_;  // of the last use
  std::string op_;                    // of the last use
  int names_ = 0;
};

// The families: uses of all operators that a version of ONNX brought, or brought anew, from 18 on.
void movement_uses(Sheet& sheet);
void control_uses(Sheet& sheet);
void elementwise_uses(Sheet& sheet);
void reduction_uses(Sheet& sheet);
void window_uses(Sheet& sheet);
void image_uses(Sheet& sheet);
void normalization_uses(Sheet& sheet);
void recurrent_uses(Sheet& sheet);
void indexing_uses(Sheet& sheet);
void random_uses(Sheet& sheet);
void text_uses(Sheet& sheet);

}  // namespace oclc::test
