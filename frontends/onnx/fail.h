// Errors of the importer.
#pragma once
#include <string>
#include <string_view>

#include "compiler/support/error.h"

namespace oclc::onnx {

// A model's text made safe for one line of a message: control and non-ASCII bytes become \xNN, long texts are cut.
std::string printable(std::string_view text);

// CompileError of stage "import" about no node in particular.
[[noreturn]] void fail(std::string wanted, std::string found = {}, std::string advice = {},
                       ExitCode code = ExitCode::bad_model);

// The name that stands in a list of candidates nearest to `name`, if it is near enough for a hint.
class NearestName {
 public:
  explicit NearestName(std::string_view name) : name_(name) {}
  void offer(std::string_view candidate);
  // "is it 'x'?", or empty.
  std::string hint() const;

 private:
  std::string_view name_;
  std::string_view best_;
  std::size_t distance_ = SIZE_MAX;
};

}  // namespace oclc::onnx
