// tools/check_layers on small trees: which includes it lets through and which it prints.
#include <doctest/doctest.h>

#include <string>

#include "tests/process.h"

namespace {

using oclc::test::Folder;
using oclc::test::Outcome;

Outcome check(const Folder& tree) { return oclc::test::run(OCLC_SOURCE_DIR "/tools/check_layers " + tree.path.string()); }

// The one line printed for `include` in `file`; empty when it is let through.
std::string verdict(const std::string& file, const std::string& include) {
  const Folder tree;
  tree.add(file, "#pragma once\n#include " + include + "\n");
  const Outcome outcome = check(tree);
  if (outcome.status == 0) return "";
  CHECK(outcome.text.find("check_layers: 1 includes break the arrows\n") != std::string::npos);
  return outcome.text.substr(0, outcome.text.find('\n'));
}

}  // namespace

TEST_CASE("includes along the arrows pass") {
  CHECK(verdict("compiler/kernels/a.h", "\"compiler/ir/graph.h\"") == "");
  CHECK(verdict("compiler/passes/a.cpp", "\"compiler/passes/pipeline/pass.h\"") == "");
  CHECK(verdict("compiler/compile.cpp", "\"compiler/plan/write.h\"") == "");
  CHECK(verdict("compiler/support/a.cpp", "\"runtime/package/plan.h\"") == "");
  CHECK(verdict("frontends/onnx/a.cpp", "\"compiler/ops/op.h\"") == "");
  CHECK(verdict("runtime/session/session.cpp", "<CL/opencl.hpp>") == "");
  CHECK(verdict("tools/oclc/main.cpp", "\"compiler/compile.h\"") == "");
  CHECK(verdict("tools/oclrun/main.cpp", "\"oclc/oclc.hpp\"") == "");
  CHECK(verdict("compiler/ir/a.cpp", "<fmt/core.h>") == "");
}

TEST_CASE("includes against the arrows are printed with their place") {
  CHECK(verdict("compiler/ir/a.h", "\"compiler/kernels/kernel.h\"") ==
        "compiler/ir/a.h:2: compiler/ir must not see compiler/kernels/kernel.h");
  CHECK(verdict("compiler/plan/a.cpp", "\"compiler/compile.h\"") ==
        "compiler/plan/a.cpp:2: compiler/plan must not see compiler/compile.h");
  CHECK(verdict("runtime/package/a.h", "\"compiler/support/error.h\"") ==
        "runtime/package/a.h:2: runtime/package must not see compiler/support/error.h");
  CHECK(verdict("runtime/session/session.cpp", "\"compiler/support/error.h\"") ==
        "runtime/session/session.cpp:2: runtime must not see compiler/support/error.h");
  CHECK(verdict("compiler/codegen/a.cpp", "\"runtime/session/session.h\"") ==
        "compiler/codegen/a.cpp:2: compiler/codegen must not see runtime/session/session.h");
  CHECK(verdict("frontends/onnx/a.cpp", "\"compiler/passes/pipeline/pass.h\"") ==
        "frontends/onnx/a.cpp:2: frontends must not see compiler/passes/pipeline/pass.h");
  CHECK(verdict("tools/oclrun/main.cpp", "\"compiler/compile.h\"") ==
        "tools/oclrun/main.cpp:2: oclrun must not see compiler/compile.h");
  CHECK(verdict("compiler/ir/a.h", "\"tools/a.h\"") == "compiler/ir/a.h:2: compiler/ir must not see tools/a.h");
}

TEST_CASE("libraries stay where they belong") {
  CHECK(verdict("compiler/codegen/a.cpp", "<CL/cl.h>") ==
        "compiler/codegen/a.cpp:2: only the runtime includes OpenCL, found <CL/cl.h>");
  CHECK(verdict("runtime/wrap.h", "<CL/opencl.hpp>") ==
        "runtime/wrap.h:2: CLHPP stays inside .cpp files, found <CL/opencl.hpp>");
  CHECK(verdict("runtime/session/session.cpp", "<fmt/core.h>") ==
        "runtime/session/session.cpp:2: the runtime uses neither fmt nor protobuf, found <fmt/core.h>");
  CHECK(verdict("runtime/include/oclc/oclc.h", "<flatbuffers/flatbuffers.h>") ==
        "runtime/include/oclc/oclc.h:2: a public header needs OpenCL and the C++ library alone, found "
        "<flatbuffers/flatbuffers.h>");
  CHECK(verdict("compiler/ir/a.cpp", "\"oclc_onnx.pb.h\"") ==
        "compiler/ir/a.cpp:2: only the front ends read ONNX messages, found oclc_onnx.pb.h");
}

TEST_CASE("paths are spelled from the root and folders are known") {
  CHECK(verdict("compiler/ir/a.cpp", "\"graph.h\"") == "compiler/ir/a.cpp:2: wanted a path from the root, found \"graph.h\"");
  CHECK(verdict("compiler/misc/a.cpp", "\"compiler/ir/graph.h\"") ==
        "compiler/misc/a.cpp:2: compiler/misc has no place in the arrows (see the head of tools/check_layers)");
}

TEST_CASE("a tree without our folders is an error, not a success") { CHECK(check(Folder()).status == 2); }
