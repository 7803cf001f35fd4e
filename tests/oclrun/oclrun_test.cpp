#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/oclrun/trace_format.h"
#include "tests/process.h"
#include "tests/runtime/plans.h"
#include "tools/fill_weights/uniform.h"
#include "tools/io/npy.h"

using namespace oclc;
using namespace oclc::test;
using nlohmann::json;

namespace oclrun_test {

const std::string kOclrun = std::string(OCLC_BINARY_DIR) + "/bin/oclrun ";

struct Fixture {
  Folder folder;
  std::string plan = (folder.path / "plan.bin").string();

  explicit Fixture(const std::vector<std::byte>& bytes = vector_plan_bytes()) {
    folder.add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  std::string file(const std::string& name) const { return (folder.path / name).string(); }
  std::string tensor(const std::string& name, const std::vector<float>& values) const {
    io::Tensor t;
    t.shape = {static_cast<std::int64_t>(values.size())};
    t.data.resize(values.size() * 4);
    std::memcpy(t.data.data(), values.data(), t.data.size());
    io::write_npy(file(name), t);
    return file(name);
  }
  Outcome run(const std::string& arguments) const { return test::run(kOclrun + plan + " " + arguments); }
};

std::vector<double> values(const std::string& path) {
  const io::Tensor t = io::read_npy(path);
  std::vector<double> list;
  for (std::uint64_t i = 0; i < t.elements(); ++i) list.push_back(t.at(i));
  return list;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

TEST_CASE("inputs from files give outputs in files") {
  const Fixture f;
  const std::string a = f.tensor("a.npy", {1, 2, 3});
  const std::string b = f.tensor("b.npy", {10, 20, 30});
  const Outcome o = f.run("--input a=" + a + " --input b=" + b + " --output y=" + f.file("y.npy"));
  CHECK(o.text == "");
  CHECK(o.status == 0);
  CHECK(values(f.file("y.npy")) == std::vector<double>{12, 45, 100});
}

TEST_CASE("--print shows elements or the largest of each row") {
  const Fixture f;
  const std::string in = "--input a=" + f.tensor("a.npy", {1, 2, 3}) + " --input b=" + f.tensor("b.npy", {0, 0, 0});
  CHECK(f.run(in + " --print").text == "y float32 [3]\n  2 5 10\n");
  CHECK(f.run(in + " --print 2").text == "y float32 [3]\n  row 0  2: 10  1: 5\n");
  CHECK(f.run("--print=1 " + in).text == "y float32 [3]\n  row 0  2: 10\n");
}

TEST_CASE("timing ends with its line") {
  const Fixture f;
  const Outcome o = f.run("--random --dim N=5 --warmup 2 --runs 7 --percentiles 50,75");
  CHECK(o.status == 0);
  const std::string line = last_line(o.text);
  CAPTURE(line);
  CHECK(line.starts_with("latency_ms median="));
  CHECK(line.find(" min=") != line.npos);
  CHECK(line.find(" p75=") != line.npos);
  CHECK(line.find(" p90=") != line.npos);
  CHECK(line.find(" p99=") != line.npos);
  CHECK(line.ends_with(" runs=7"));
}

TEST_CASE("--json is one document") {
  const Fixture f;
  const Outcome o = f.run("--random=7 --dim N=5 --runs 3 --json --profile");
  REQUIRE(o.status == 0);
  const json d = json::parse(o.text);
  CHECK(d["schema"] == 1);
  CHECK(d["latency_ms"]["runs"] == 3);
  CHECK(d["latency_ms"]["median"].get<double>() > 0);
  CHECK(d["entry"] == "predict");
  CHECK(d["memory"]["launches"] == 3);
  CHECK(d["outputs"][0]["shape"] == json::array({5}));
  CHECK(d["profile"]["rows"].size() == 3);
}

TEST_CASE("profiles as table, CSV and JSON, and a trace") {
  const Fixture f;
  const std::string in = "--random --dim N=4000 --runs 2 ";
  const Outcome table = f.run(in + "--profile");
  CHECK(table.status == 0);
  CHECK(table.text.find("time us") == 3);
  CHECK(table.text.find("add_node") != std::string::npos);
  CHECK(table.text.find("total of 3 kernels, mean of 2 runs\n") != std::string::npos);
  CHECK(last_line(table.text).starts_with("latency_ms "));
  const Outcome csv = f.run(in + "--profile=csv");
  CHECK(csv.text.starts_with("kernel,anchor,nodes,time_us,calls,flops,bytes,gflops,gbs\n"));
  CHECK(csv.text.find("scale,pointwise,scale_node,") != std::string::npos);
  const Outcome trace = f.run(in + "--trace " + f.file("trace.json"));
  CHECK(trace.status == 0);
  const json written = json::parse(std::ifstream(f.file("trace.json")));
  CHECK(problem_of_trace(written) == "");
  const json& events = written["traceEvents"];
  REQUIRE(events.size() == 5);
  double end = 0;
  for (std::size_t i = 2; i < events.size(); ++i) {
    CHECK(events[i]["ph"] == "X");
    CHECK(events[i]["ts"].get<double>() >= end);
    CHECK(events[i]["dur"].get<double>() > 0);
    end = events[i]["ts"].get<double>() + events[i]["dur"].get<double>();
  }
  CHECK(events[2]["name"] == "add");
}

TEST_CASE("--verify runs every case of cases.json that fits") {
  const Fixture f;
  const auto reference = [](std::uint64_t n) {
    std::vector<float> y;
    for (std::uint64_t i = 0; i < n; ++i) y.push_back((fill::uniform(11, i, -2, 2) + 3) * static_cast<float>(1 + i % 4) + 1);
    return y;
  };
  std::vector<float> every_second;
  for (std::size_t i = 0; i < 9; i += 2) every_second.push_back(reference(9)[i]);
  f.tensor("y4.npy", reference(4));
  f.tensor("y9.npy", every_second);
  json document = json::parse(R"({"inputs": [
    {"name": "a", "dtype": "float32", "shape": ["N"], "seed": 11, "lo": -2, "hi": 2},
    {"name": "b", "dtype": "float32", "shape": ["N"], "const": 3}],
    "cases": [
      {"dims": {"N": 4}, "outputs": [{"name": "y", "file": "y4.npy", "shape": [4], "stride": 1, "max_abs": 20}]},
      {"dims": {"N": 9}, "outputs": [{"name": "y", "file": "y9.npy", "shape": [9], "stride": 2, "max_abs": 20}]}]})");
  f.folder.add("cases.json", document.dump());
  Outcome o = f.run("--verify " + f.folder.path.string());
  CHECK(o.status == 0);
  CHECK(o.text ==
        "N=4  output 'y'  max_abs=0 max_rel=0  ok\n"
        "N=9  output 'y'  max_abs=0 max_rel=0  ok\n"
        "verify: PASS max_abs=0 max_rel=0 (atol=0 rtol=5e-06)\n");
  CHECK(f.run("--dim N=9 --verify " + f.folder.path.string()).text.starts_with("N=9 "));
  CHECK(f.run("--case 1 --verify " + f.folder.path.string()).text.starts_with("N=9 "));

  every_second[4] += 0.25f;
  f.tensor("y9.npy", every_second);
  o = f.run("--verify " + f.folder.path.string());
  CHECK(o.status == 7);
  CHECK(o.text ==
        "N=4  output 'y'  max_abs=0 max_rel=0  ok\n"
        "N=9  output 'y'  max_abs=0.25 max_rel=0.0125  WRONG\n"
        "verify: FAIL max_abs=0.25 max_rel=0.0125 (atol=0 rtol=5e-06)\n");
  CHECK(f.run("--rtol 0.02 --verify " + f.folder.path.string()).status == 0);
  CHECK(f.run("--atol 0.3 --verify " + f.folder.path.string()).status == 0);
  every_second[4] = std::nanf("");
  f.tensor("y9.npy", every_second);
  CHECK(last_line(f.run("--rtol 0.02 --verify " + f.folder.path.string()).text) ==
        "verify: FAIL max_abs=inf max_rel=inf (atol=0 rtol=0.02)");

  o = f.run("--dim N=5 --verify " + f.folder.path.string());
  CHECK(o.status == 3);
  CHECK(o.text == "oclrun: error: " + f.file("cases.json") +
                      ": no case fits the plan:\n  case 0 (N=4): --dim says N=5\n  case 1 (N=9): --dim says N=5\n");
  CHECK(f.run("--case 2 --verify " + f.folder.path.string()).text ==
        "oclrun: error: " + f.file("cases.json") + ": has 2 cases, --case asks for case 2\n");
  f.folder.add("cases.json", "{\"inputs\": [");
  CHECK(f.run("--verify " + f.folder.path.string()).status == 3);
}

TEST_CASE("--verify reads an ONNX test_data_set") {
  const Fixture f(two_output_plan_bytes());
  const auto proto = [](const std::string& name, const std::vector<float>& v) {
    std::string text = "\x08\x04\x10\x01";
    if (!name.empty()) text += "\x42" + std::string(1, static_cast<char>(name.size())) + name;
    return text + "\x4a\x10" + std::string(reinterpret_cast<const char*>(v.data()), 16);
  };
  f.folder.add("set/input_0.pb", proto("", {1, 2, 3, 4}));
  f.folder.add("set/output_0.pb", proto("negated", {-1, -2, -3, -4}));
  f.folder.add("set/output_1.pb", proto("twice", {2, 4, 6, 8}));
  Outcome o = f.run("--verify " + f.file("set"));
  CHECK(o.status == 0);
  CHECK(last_line(o.text) == "verify: PASS max_abs=0 max_rel=0 (atol=1e-07 rtol=0.001)");
  f.folder.add("model/test_data_set_0/input_0.pb", proto("x", {1, 2, 3, 4}));
  f.folder.add("model/test_data_set_0/output_0.pb", proto("", {2, 4, 6, 8.5}));
  o = f.run("--verify " + f.file("model"));
  CHECK(o.status == 7);
  CHECK(o.text.starts_with("test_data_set_0  output 'twice'  max_abs=0.5 max_rel=0.0588  WRONG\n"));
  CHECK(f.run("--inputs " + f.file("set") + " --print").text ==
        "twice float32 [4]\n  2 4 6 8\nnegated float32 [4]\n  -1 -2 -3 -4\n");
  CHECK(f.run("--verify " + f.folder.path.string()).text ==
        "oclrun: error: " + f.folder.path.string() +
            ": wanted cases.json, output_0.pb or folders test_data_set_*, found none of them\n");
  CHECK(f.run("--verify " + f.file("none")).status == 6);
}

TEST_CASE("state is saved and loaded") {
  const Fixture f(counter_plan_bytes());
  const std::string x = f.tensor("x.npy", {1, 2});
  CHECK(f.run("--entry add --input x=" + x + " --runs 3 --save-state " + f.file("state.bin")).status == 0);
  // One run before the timed three, as a warm-up of the drivers.
  CHECK(f.run("--entry get --load-state " + f.file("state.bin") + " --print").text == "total float32 [2]\n  14 28\n");
  CHECK(f.run("--entry get --print").text == "total float32 [2]\n  10 20\n");
  const Outcome plan = f.run("--entry get --load-state " + f.plan);
  CHECK(plan.status == 3);
  CHECK(plan.text == "oclrun: error: " + f.plan + ": not a checkpoint: it is a plan\n");
  const Outcome state = test::run(kOclrun + f.file("state.bin"));
  CHECK(state.status == 3);
  CHECK(state.text == "oclrun: error: " + f.file("state.bin") +
                          ": a checkpoint, not a plan; load it into a session of its plan (oclrun PLAN --load-state)\n");
  const Fixture other;
  const Outcome o = other.run("--random --dim N=2 --load-state " + f.file("state.bin"));
  CHECK(o.status == 3);
  CHECK(o.text == "oclrun: error: " + f.file("state.bin") +
                      ": a checkpoint of another model: it has variable 'calls', which the plan lacks\n");
}

TEST_CASE("a dimension that no input has is asked for by --dim") {
  const Fixture f(loop_plan_bytes());
  const Outcome o = f.run("--random");
  CHECK(o.status == 2);
  CHECK(
      o.text ==
      "oclrun: error: dimension 'T' has no value: give --dim T=SIZE, or a file for an input that has it; see oclrun --help\n");
  CHECK(f.run("--random --dim T=3").status == 0);
}

TEST_CASE("where PoCL's linker is not on the PATH, the run ends with what to install") {
  const Fixture f;
  const std::string arguments = " --random --dim N=2 --device cpu --verbose";
  const Outcome here = f.run(arguments);
  REQUIRE(here.status == 0);
  if (here.text.find("PoCL") == std::string::npos) return;  // another driver for processors
  const Outcome o = test::run("PATH=/nonexistent " + kOclrun + f.plan + arguments);
  CHECK(o.status == 5);
  CHECK(o.text.find(
            "links kernels by the program `ld`, which is not on the PATH; install it (Debian: apt-get install binutils)") !=
        std::string::npos);
}

TEST_CASE("steps of an entry point without a loss tell of none") {
  const Fixture f;
  const Outcome o = f.run("--steps 3 --entry predict --random --dim N=4");
  CHECK(o.status == 0);
  CHECK(o.text.starts_with("train: steps=3 samples_per_s="));
  CHECK(o.text.find("loss") == std::string::npos);
  const Outcome as_json = f.run("--steps 3 --entry predict --random --dim N=4 --json");
  REQUIRE(as_json.status == 0);
  CHECK(!json::parse(as_json.text)["train"].contains("loss"));
}

TEST_CASE("errors name the culprit and exit with its code") {
  const Fixture f;
  const auto error = [&](const std::string& arguments, int status) {
    const Outcome o = f.run(arguments);
    CHECK(o.status == status);
    return o.text;
  };
  CHECK(error("", 2) ==
        "oclrun: error: input 'a' [N] has no value: give --input a=FILE, --inputs DIR or --random; see oclrun --help\n");
  CHECK(error("--random", 2) ==
        "oclrun: error: dimension 'N' has no value: give --dim N=SIZE, or a file for an input that has it; see oclrun "
        "--help\n");
  CHECK(error("--dim N", 2) == "oclrun: error: --dim: wanted NAME=VALUE, found 'N'; see oclrun --help\n");
  CHECK(error("--dim N=x", 2) == "oclrun: error: --dim: wanted NAME=NUMBER, found 'N=x'; see oclrun --help\n");
  CHECK(error("--dim M=1 --random", 2) == "oclrun: error: the plan has no dimension 'M'; it has: N\n");
  CHECK(error("--random=x", 2) == "oclrun: error: --random: wanted a seed, found 'x'; see oclrun --help\n");
  CHECK(error("--profile=xml", 2) == "oclrun: error: --profile: wanted table, json or csv, found 'xml'; see oclrun --help\n");
  CHECK(error("--percentiles 50,x", 2) ==
        "oclrun: error: --percentiles: wanted numbers from 0 to 100 separated by commas, found '50,x'; see oclrun --help\n");
  CHECK(error("--case 1", 2) == "oclrun: error: --case: wanted --verify with it; see oclrun --help\n");
  CHECK(error("--input c=" + f.tensor("c.npy", {1}), 2) ==
        "oclrun: error: --input: entry point 'predict' has no input 'c'; it has: a, b; see oclrun --help\n");
  CHECK(error("--output z=z.npy --random --dim N=1", 2) ==
        "oclrun: error: --output: entry point 'predict' has no output 'z'; it has: y; see oclrun --help\n");
  CHECK(error("--entry train", 2) == "oclrun: error: the plan has no entry point 'train'; it has: predict\n");
  CHECK(error("--input a=" + f.file("none.npy"), 6) ==
        "oclrun: error: " + f.file("none.npy") + ": cannot open: No such file or directory\n");
  CHECK(error("--input a=" + f.plan, 3) == "oclrun: error: " + f.plan + ": wanted a file ending in .npy or .pb\n");
  CHECK(error("--unknown --rums=3 -z", 2) ==
        "oclrun: error: unknown option '--unknown'; unknown option '--rums', did you mean '--runs'?; unknown option '-z'; see "
        "oclrun --help\n");
  CHECK(error("--runs 0", 2) == "oclrun: error: --runs: wanted a number above 0, found '0'; see oclrun --help\n");
  CHECK(error("--batch 0", 2) == "oclrun: error: --batch: wanted a number above 0, found '0'; see oclrun --help\n");
  CHECK(error("--steps 0", 2) == "oclrun: error: --steps: wanted a number above 0, found '0'; see oclrun --help\n");
  CHECK(error("--steps x", 2) == "oclrun: error: --steps: wanted a number above 0, found 'x'; see oclrun --help\n");
  CHECK(error("--warmup=-1", 2) == "oclrun: error: --warmup: wanted a number of at least 0, found '-1'; see oclrun --help\n");
  CHECK(error("--random --dim N=2 --output y=" + f.file("none/y.npy"), 6).find("No such file or directory") !=
        std::string::npos);
  CHECK(run(kOclrun + f.file("none.bin")).text ==
        "oclrun: error: " + f.file("none.bin") + ": cannot open: No such file or directory\n");
  CHECK(run(kOclrun + f.file("none.bin")).status == 6);
  f.folder.add("text.bin", "hello");
  CHECK(run(kOclrun + f.file("text.bin")).status == 3);
  CHECK(run(kOclrun).status == 2);
  CHECK(run(kOclrun + "--version").text.starts_with("oclrun 0."));
  CHECK(run(kOclrun + "--help").status == 0);
}

TEST_CASE("threads of PoCL stay on their cores where there is one for each, unless the caller chose otherwise") {
  const Fixture f;
  const auto pinned = [&](const std::string& environment) {
    const Outcome o = run(environment + " taskset -c 0 " + kOclrun + f.plan + " --dim N=3 --random -v");
    CHECK_MESSAGE(o.status == 0, o.text);
    return o.text.find("oclrun: note: threads of PoCL stay on a core each") != std::string::npos;
  };
  CHECK(pinned("env -u POCL_AFFINITY POCL_MAX_PTHREAD_COUNT=1"));
  CHECK_FALSE(pinned("env -u POCL_AFFINITY POCL_MAX_PTHREAD_COUNT=2"));
  CHECK_FALSE(pinned("POCL_AFFINITY=0 POCL_MAX_PTHREAD_COUNT=1"));
}

TEST_CASE("case 73: processes that fill one program cache at once do no harm") {
  const Fixture f;
  const std::string in = "--input a=" + f.tensor("a.npy", {1, 2, 3}) + " --input b=" + f.tensor("b.npy", {0, 0, 0});
  const std::string command = "OCLC_CACHE=1 OCLC_CACHE_DIR=" + f.file("cache") + " " + kOclrun + f.plan + " " + in + " --print";
  const Outcome o = run("for i in 1 2 3 4; do " + command + " & done; wait");
  const std::string one = "y float32 [3]\n  2 5 10\n";
  CHECK(o.text == one + one + one + one);
  CHECK(std::distance(std::filesystem::directory_iterator(f.file("cache")), {}) == 1);
  CHECK(run(command + " -v").text.find("(0 built, 1 from the cache)") != std::string::npos);
}

TEST_CASE("case 83: without a platform the error says what to do") {
  const Fixture f;
  const Outcome o = run("OCL_ICD_VENDORS=/nonexistent " + kOclrun + f.plan + " --random --dim N=1");
  CHECK(o.status == 5);
  CHECK(o.text ==
        "oclrun: error: no OpenCL device found; install a driver (Debian: pocl-opencl-icd for CPUs), check that `clinfo -l` "
        "lists a device, "
        "that OCL_ICD_VENDORS is unset or right, and that PoCL's cache folder (POCL_CACHE_DIR) is writable\n");
}

TEST_CASE("case 84: devices are chosen by index, place, class and name, and listed when the choice fails") {
  const Fixture f;
  const std::string in = "--random --dim N=3 ";
  CHECK(f.run(in + "--device 0").status == 0);
  CHECK(f.run(in + "--device cpu").status == 0);
  CHECK(f.run(in + "--device 0:0").status == 0);
  CHECK(f.run(in + "--device pthread~").status == 0);
  CHECK(f.run(in + "--device PTHREAD").status == 0);
  CHECK(f.run(in + "--device portable").status == 0);
  for (const std::string& wrong : {std::string("99"), std::string("9:9"), std::string("imaginary")}) {
    const Outcome o = f.run(in + "--device " + wrong);
    CHECK(o.status == 5);
    CHECK(o.text.find("\n  0  0:0  ") != std::string::npos);
  }
  CHECK(f.run(in + "--device 99").text.starts_with("oclrun: error: device index 99 is out of range; there are:\n"));
  CHECK(f.run(in + "--device imaginary")
            .text.starts_with(
                "oclrun: error: device 'imaginary' fits no device; choose by index, P:D, cpu, gpu or a part of a name:\n"));
  CHECK(run("OCLC_DEVICE=99 " + kOclrun + f.plan + " " + in).status == 5);
}

TEST_CASE("case 107: a full or closed standard output is an error, not a crash") {
  const Fixture f;
  const Outcome full = run("(" + kOclrun + f.plan + " --random --dim N=3 --print > /dev/full)");
  CHECK(full.status == 6);
  CHECK(full.text == "oclrun: error: cannot write to standard output\n");
  CHECK(run(kOclrun + f.plan + " --random --dim N=3 --print | head -c 1").status == 0);
}

}  // namespace oclrun_test
