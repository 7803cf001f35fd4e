// What an import says when it fails.
#pragma once
#include <doctest/doctest.h>

#include <concepts>
#include <string>
#include <vector>

#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::test {

struct Failure {
  std::string text;  // "no error" if there was none
  ExitCode code = ExitCode::good;
};

template <std::invocable Call>
Failure failure_of(Call&& call) {
  try {
    call();
  } catch (const CompileError& error) {
    CHECK(error.parts().stage == "import");
    return {error.what(), error.parts().exit_code};
  }
  return {"no error", ExitCode::good};
}

inline Failure failure_of(const Writer& writer, const ImportOptions& options = {}) {
  return failure_of([&] { writer.import(options); });
}

inline Failure failure_of(const std::filesystem::path& file, const ImportOptions& options = {}) {
  return failure_of([&] { import_onnx(file, options); });
}

// Checks text and exit code of a failed import.
#define CHECK_FAILS(call, expected_text, expected_code)       \
  do {                                                        \
    const ::oclc::test::Failure failure = (call);             \
    CHECK(failure.text == (expected_text));                   \
    CHECK(static_cast<int>(failure.code) == (expected_code)); \
  } while (false)

// Collects warnings into `into`.
inline ImportOptions with_warnings(std::vector<std::string>& into) {
  ImportOptions options;
  options.warn = [&into](const std::string& text) { into.push_back(text); };
  return options;
}

// y = relu(x), x of shape [N, 4].
inline Writer relu_model() {
  Writer w;
  w.input("x", {"N", 4}).output("y", {"N", 4});
  w.node("Relu", {"x"}, {"y"}, "act");
  return w;
}

}  // namespace oclc::test
