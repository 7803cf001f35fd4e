// Programs of torch.export that are wrong.
#include <doctest/doctest.h>

#include <filesystem>

#include "frontends/pt2/import.h"
#include "frontends/pt2/program.h"
#include "tests/errors/import_error.h"

namespace oclc::test {
namespace {

// A program of one node on x, f32[2, 3] in rows.
std::string program_of(const std::string& node, const std::string& sizes = R"({"as_int":2},{"as_int":3})") {
  const std::string tensor =
      R"({"dtype":7,"sizes":[)" + sizes + R"(],"strides":[{"as_int":3},{"as_int":1}],"storage_offset":{"as_int":0}})";
  return R"({"schema_version":{"major":8,"minor":0},"range_constraints":{},"graph_module":{"signature":{"input_specs":[{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],"output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"y"}}}}]},"graph":{"inputs":[{"as_tensor":{"name":"x"}}],"outputs":[{"as_tensor":{"name":"y"}}],"nodes":[)" +
         node + R"(],"tensor_values":{"x":)" + tensor + R"(,"y":)" + tensor +
         R"(},"sym_int_values":{},"sym_bool_values":{}}}})";
}

// With its only input twice.
std::string with_two_inputs(std::string program) {
  const std::string inputs = R"("inputs":[{"as_tensor":{"name":"x"}})";
  return program.insert(program.find(inputs) + inputs.size(), R"(,{"as_tensor":{"name":"x"}})");
}

std::string node_of(const std::string& target, const std::string& inputs) {
  return R"({"target":"torch.ops.)" + target + R"(","inputs":[)" + inputs +
         R"(],"outputs":[{"as_tensor":{"name":"y"}}],"metadata":{}})";
}

}  // namespace

TEST_CASE("a program whose arguments are missing or do not fit is refused") {
  const std::string self = R"({"name":"self","arg":{"as_tensor":{"name":"x"}}})";
  const auto failure = [](const std::string& node) { return failure_of([&] { import_pt2_graph(program_of(node)); }).text; };
  CHECK(failure(node_of("aten.relu.default", self)) == "no error");
  CHECK(failure_of([&] { import_pt2_graph(with_two_inputs(program_of(node_of("aten.relu.default", self)))); }).text ==
        "wanted inputs of different names, found two 'x'");
  CHECK(failure(node_of("aten.as_strided.default", "")).find("wanted the argument 'self', found none") != std::string::npos);
  CHECK(failure(node_of("aten.as_strided.default",
                        self + R"(,{"name":"size","arg":{"as_ints":[2,3]}},{"name":"stride","arg":{"as_ints":[1]}})"))
            .find("wanted a stride for each of 2 sizes, found 1") != std::string::npos);
}

TEST_CASE("a symbol of a program is called like one") {
  CHECK(pt2::parse_sympy("Max(Integer(1), Symbol('s0'))", {{"s0", {0, 100}}}).text() == "max(s0, 1)");
  CHECK(failure_of([] { pt2::parse_sympy("Symbol('s\xe8')", {}); }).text != "no error");
  CHECK(failure_of([] { pt2::parse_sympy("Symbol('0s')", {}); }).text != "no error");
  CHECK(failure_of([] { pt2::parse_sympy("Symbol('a b', integer=True)", {}); }).text != "no error");
}

}  // namespace oclc::test
