// oclc --carry, and oclrun --steps of such plans.
#include <cmath>
#include <cstring>

#include "tests/cli/cli.h"
#include "tools/io/npy.h"

namespace {

using namespace oclc;
using namespace oclc::test;

constexpr std::int64_t kSteps = 1000, kIn = 3, kHidden = 5;

io::Tensor tensor_of(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  io::Tensor t;
  t.shape = shape;
  t.data.resize(values.size() * sizeof(float));
  std::memcpy(t.data.data(), values.data(), t.data.size());
  return t;
}

std::vector<float> some(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& v : values) {
    seed = seed * 1664525u + 1013904223u;
    v = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return values;
}

// A GRU over `steps`: x[steps, 1, I] and the first state h[1, 1, H] give y[steps, 1, 1, H] and the last state.
Writer gru_model(std::int64_t steps) {
  Writer w;
  w.input("x", {steps, 1, kIn})
      .input("h", {1, 1, kHidden})
      .output("y", {steps, 1, 1, kHidden})
      .output("h_next", {1, 1, kHidden});
  w.floats("w", {1, 3 * kHidden, kIn}, some(3 * kHidden * kIn, 1))
      .floats("r", {1, 3 * kHidden, kHidden}, some(3 * kHidden * kHidden, 2));
  w.floats("b", {1, 6 * kHidden}, some(6 * kHidden, 3));
  set_int(w.node("GRU", {"x", "w", "r", "b", "", "h"}, {"y", "h_next"}, "gru"), "hidden_size", kHidden);
  return w;
}

struct Models : Folder {
  Models() {
    add("cell.onnx", gru_model(1).bytes());
    add("whole.onnx", gru_model(kSteps).bytes());
    io::write_npy(at("x.npy"), tensor_of({kSteps, 1, 1, kIn}, some(kSteps * kIn, 4)));
    io::write_npy(at("whole_x.npy"), tensor_of({kSteps, 1, kIn}, some(kSteps * kIn, 4)));
    io::write_npy(at("h.npy"), tensor_of({1, 1, kHidden}, some(kHidden, 5)));
  }
  std::string at(const std::string& file) const { return (path / file).string(); }
  Outcome compile(const std::string& model, const std::string& options) const {
    return run_oclc(at(model + ".onnx") + " --target cpu -o " + at(model + ".bin") + " " + options);
  }
  Outcome oclrun(const std::string& model, const std::string& options) const {
    return run(OCLC_BINARY_DIR "/bin/oclrun " + at(model + ".bin") + " --device cpu " + options);
  }
  void refuses(const std::string& options, int status, const std::string& text) const {
    const Outcome o = oclrun("cell", options);
    CHECK(o.status == status);
    CHECK(o.text == "oclrun: error: " + text + "\n");
  }
  double difference(const std::string& a, const std::string& b) const {
    const io::Tensor x = io::read_npy(at(a)), y = io::read_npy(at(b));
    REQUIRE(x.elements() == y.elements());
    double most = 0;
    for (std::uint64_t i = 0; i < x.elements(); ++i) most = std::max(most, std::abs(x.at(i) - y.at(i)));
    return most;
  }
};

}  // namespace

TEST_CASE("--carry: 1,000 steps of a GRU of one step give what the GRU gives on the sequence") {
  const Models m;
  REQUIRE(m.compile("whole", "").status == 0);
  const Outcome compiled = m.compile("cell", "--carry h_next=h");
  CAPTURE(compiled.text);
  REQUIRE(compiled.status == 0);
  const Outcome info = run_oclc("info " + m.at("cell.bin"));
  CHECK(has(info.text, "state   h: f32[1, 1, 5], output 'h_next' of the run before\n"));
  const auto document = nlohmann::json::parse(run_oclc("info " + m.at("cell.bin") + " --json").text);
  CHECK(document["states"][0]["carried_from"] == "h_next");

  REQUIRE(m.oclrun("whole", "--input x=" + m.at("whole_x.npy") + " --input h=" + m.at("h.npy") +
                                " --output y=" + m.at("whole_y.npy") + " --output h_next=" + m.at("whole_h.npy"))
              .status == 0);
  const Outcome steps = m.oclrun("cell", "--steps 1000 --input x=" + m.at("x.npy") + " --input h=" + m.at("h.npy") +
                                             " --output y=" + m.at("y.npy") + " --output h_next=" + m.at("series.npy") +
                                             " --output h=" + m.at("last.npy"));
  CAPTURE(steps.text);
  REQUIRE(steps.status == 0);
  CHECK(matches(steps.text, "steps: steps=1000 us_per_step=[0-9.e+]+ seconds=[0-9.]+\n"));
  CHECK(io::read_npy(m.at("y.npy")).shape == std::vector<std::int64_t>{kSteps, 1, 1, 1, kHidden});
  CHECK(m.difference("y.npy", "whole_y.npy") < 1e-5);
  CHECK(m.difference("series.npy", "whole_y.npy") < 1e-5);  // the output that is carried stays an output
  CHECK(m.difference("last.npy", "whole_h.npy") < 1e-5);    // the state at the end

  // Half the steps, a checkpoint, the other half.
  io::write_npy(m.at("first.npy"), tensor_of({500, 1, 1, kIn}, some(500 * kIn, 4)));
  REQUIRE(m.oclrun("cell",
                   "--steps 500 --input x=" + m.at("first.npy") + " --input h=" + m.at("h.npy") + " --save-state " + m.at("s"))
              .status == 0);
  const std::vector<float> all = some(kSteps * kIn, 4);
  io::write_npy(m.at("second.npy"), tensor_of({500, 1, 1, kIn}, {all.begin() + 500 * kIn, all.end()}));
  REQUIRE(m.oclrun("cell", "--steps 500 --input x=" + m.at("second.npy") + " --load-state " + m.at("s") +
                               " --output h=" + m.at("last.npy"))
              .status == 0);
  CHECK(m.difference("last.npy", "whole_h.npy") < 1e-5);
}

TEST_CASE("--carry OUT=IN,state leaves the output out of the plan") {
  const Models m;
  REQUIRE(m.compile("cell", "--carry h_next=h,state").status == 0);
  CHECK(!has(run_oclc("info " + m.at("cell.bin")).text, "output  h_next"));
  REQUIRE(m.oclrun("cell", "--random --input h=" + m.at("h.npy") + " --output h=" + m.at("one.npy")).status == 0);  // one run
  CHECK(m.difference("one.npy", "h.npy") > 1e-3);
  m.refuses("--random --output h_next=x.npy", 2,
            "--output: entry point 'predict' has no output 'h_next'; it has: y, h; see oclrun --help");
}

TEST_CASE("--carry of what does not fit is one clear error") {
  const Models m;
  const auto refused = [&](const std::string& options) {
    const Outcome o = m.compile("cell", options);
    CHECK(o.status == 2);
    CHECK(!std::filesystem::exists(m.at("cell.bin")));
    return o.text;
  };
  CHECK(has(refused("--carry h_nxt=h"),
            "wanted an output 'h_nxt' of the model for --carry h_nxt=h, found none of that name; it has: y, h_next; "
            "did you mean 'h_next'?"));
  CHECK(has(refused("--carry h_next=s"),
            "wanted an input 's' of the model for --carry h_next=s, found none of that name; it has: x, h"));
  CHECK(has(refused("--carry h_next=x"),
            "wanted an output and an input of one type and shape for --carry h_next=x, found output f32[1, 1, 5], "
            "input f32[1, 1, 3]"));
  CHECK(has(refused("--carry h_next=h --carry h_next=x"),
            "wanted each output once for --carry h_next=x, found 'h_next' before as 'h_next=h'"));
  CHECK(has(refused("--carry h_next"), "wanted --carry OUT=IN or OUT=IN,state, found 'h_next'"));
  CHECK(has(refused("--carry h_next=h --train output"), "--carry does not go with --train"));
}

TEST_CASE("oclrun --steps of a plan whose outputs feed its inputs: what does not fit is one clear error") {
  const Models m;
  REQUIRE(m.compile("cell", "--carry h_next=h").status == 0);
  const std::string help = "; see oclrun --help";
  m.refuses("--steps 10", 2,
            "input 'x' [1, 1, 3] has no value: give --input x=FILE, with the step as its first dimension or the same in "
            "all, or --random" +
                help);
  m.refuses("--steps 1001 --input x=" + m.at("x.npy"), 3, m.at("x.npy") + ": input 'x' has values for 1000 steps, wanted 1001");
  m.refuses("--steps 10 --input x=" + m.at("x.npy") + " --input h=" + m.at("x.npy"), 3,
            m.at("x.npy") + ": input 'h' wanted float32 [1, 1, 5], found float32 [1000, 1, 1, 3]");
  m.refuses("--steps 10 --input z=" + m.at("x.npy"), 2,
            "--input: entry point 'predict' has no input 'z'; it has: x, and state h" + help);
  m.refuses("--input z=" + m.at("x.npy"), 2, "--input: entry point 'predict' has no input 'z'; it has: x, and state h" + help);
  m.refuses("--steps 10 --data x=" + m.at("x.npy"), 2,
            "--data does not go with --steps of a plan whose outputs feed its inputs; give --input NAME=FILE" + help);
}
