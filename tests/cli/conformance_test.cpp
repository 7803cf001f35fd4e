// oclc conformance: cases in the form of ONNX's backend tests.
#include "tests/cli/cli.h"

namespace oclc::test {
namespace {

// y = relu(x) of two numbers, with the results that a case wants.
void add_case(const Folder& folder, const std::string& name, const std::vector<float>& wanted) {
  Writer w;
  w.input("x", {2}).output("y", {2});
  w.node("Relu", {"x"}, {"y"}, "relu");
  folder.add("group/" + name + "/model.onnx", w.bytes());
  TensorProto x, y;
  set_floats(x, "x", {2}, {-1, 2});
  set_floats(y, "y", {2}, wanted);
  folder.add("group/" + name + "/test_data_set_0/input_0.pb", x.SerializeAsString());
  folder.add("group/" + name + "/test_data_set_0/output_0.pb", y.SerializeAsString());
}

TEST_CASE("conformance counts cases and says what differs") {
  const Folder folder;
  add_case(folder, "test_good", {0, 2});
  add_case(folder, "test_near", {0, 2.001f});
  add_case(folder, "test_far", {0, 2.1f});
  add_case(folder, "test_other_size", {0, 2});
  TensorProto y;
  set_floats(y, "y", {1}, {0});
  folder.add("group/test_other_size/test_data_set_0/output_0.pb", y.SerializeAsString());
  const std::string command = "conformance --device cpu " + folder.path.string();
  const std::string file = (folder.path / "report.json").string();
  const Outcome all = run_oclc(command + " --json " + file);
  CHECK_MESSAGE(all.status == 7, all.text);
  CHECK(has(all.text, "PASS group/test_good\n"));
  CHECK(has(all.text, "PASS group/test_near\n"));
  CHECK(has(all.text, "FAIL group/test_far: output 'y': element 1 is 2 instead of 2.0999"));
  CHECK(has(all.text, "FAIL group/test_other_size: output 'y': f32[2] instead of f32[1]"));
  CHECK(std::regex_search(all.text, std::regex("Relu +2 +4\n")));
  CHECK(has(all.text, "2 passed, 2 failed\n"));
  const auto document = nlohmann::json::parse(read_bytes(file));
  CHECK(document.at("passed") == 2);
  CHECK(document.at("cases").size() == 4);

  folder.add("list", "# known\ngroup/test_far another result\ngroup/test_other_size another size\n");
  const std::string expect = " --expect " + (folder.path / "list").string();
  CHECK(run_oclc(command + expect).status == 0);
  folder.add("list", "group/test_far another result\ngroup/test_good\n");
  const Outcome surprised = run_oclc(command + expect);
  CHECK(surprised.status == 7);
  CHECK(has(surprised.text, "PASS group/test_good (listed as a failure)"));
  CHECK(has(surprised.text, "instead of f32[1] (not listed as a failure)"));
  CHECK(has(surprised.text, "2 cases not as listed"));

  CHECK(has(run_oclc(command + " --filter test_good --report").text, "PASS group/test_good\n  relu (relu): kernel k_relu"));
  CHECK(has(run_oclc(command + " --filter 'test_[gn]*'").text, "2 passed, 0 failed\n"));
  CHECK(has(run_oclc(command + " --filter test_good --timeout 1e-6").text, "no result within 1e-06 s"));
  CHECK(run_oclc(command + " --filter nothing").status == 2);
  CHECK(run_oclc("conformance").status == 2);
  CHECK(has(run_oclc(command + " --target cpu").text, "wanted --target or --device, found both"));
}

TEST_CASE("conformance gives the compiler the values that decide a shape") {
  const Folder folder;
  Writer w;
  w.input("x", {3}).output("y", {"n"});
  auto* ends = w.model.mutable_graph()->add_input();
  set_type(*ends, "ends", {1}, TensorProto::INT64);
  w.ints("starts", {1}, {0});
  w.node("Slice", {"x", "starts", "ends"}, {"y"}, "slice");
  folder.add("group/test_slice/model.onnx", w.bytes());
  for (int set = 0; set < 2; ++set) {
    const std::string at = "group/test_slice/test_data_set_" + std::to_string(set);
    TensorProto x, n, y;
    set_floats(x, "x", {3}, {1, 2, 3});
    set_ints(n, "ends", {1}, {1 + set});
    set_floats(y, "y", {1 + set}, set ? std::vector<float>{1, 2} : std::vector<float>{1});
    folder.add(at + "/input_0.pb", x.SerializeAsString());
    folder.add(at + "/input_1.pb", n.SerializeAsString());
    folder.add(at + "/output_0.pb", y.SerializeAsString());
  }
  const Outcome outcome = run_oclc("conformance -v --device cpu " + folder.path.string());
  CHECK_MESSAGE(outcome.status == 0, outcome.text);
  CHECK(has(outcome.text, "compiled for ends"));
}

}  // namespace
}  // namespace oclc::test
