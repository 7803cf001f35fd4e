// oclc --refit, and oclc refit: new weights without compiling again.
#include <cmath>
#include <cstring>

#include "tests/cli/cli.h"
#include "tools/io/npy.h"

namespace {

using namespace oclc;
using namespace oclc::test;

constexpr std::int64_t kSize = 6, kIn = 3, kOut = 5;

std::vector<float> some(std::size_t count, std::uint32_t seed, float low = -1) {
  std::vector<float> values(count);
  for (float& v : values) {
    seed = seed * 1664525u + 1013904223u;
    v = low + static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) * (1 - low) / 2;
  }
  return values;
}

void write_numbers(const std::string& file, const std::vector<std::int64_t>& shape) {
  io::Tensor x;
  std::size_t count = 1;
  for (const std::int64_t size : shape) {
    x.shape.push_back(static_cast<decltype(x.shape)::value_type>(size));
    count *= static_cast<std::size_t>(size);
  }
  const auto values = some(count, 7);
  x.data.resize(values.size() * sizeof(float));
  std::memcpy(x.data.data(), values.data(), x.data.size());
  io::write_npy(file, x);
}

struct Weight {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

std::vector<Weight> weights(std::uint32_t seed) {
  return {{"conv.w", {kOut, kIn, 3, 3}, some(kOut * kIn * 9, seed)},
          {"bn.scale", {kOut}, some(kOut, seed + 1, 0.5f)},
          {"bn.bias", {kOut}, some(kOut, seed + 2)},
          {"bn.mean", {kOut}, some(kOut, seed + 3)},
          {"bn.var", {kOut}, some(kOut, seed + 4, 0.5f)},
          {"fc.w", {kOut, 4}, some(kOut * 4, seed + 5)}};
}

// y = mean(relu(bn(conv(x)))) fc: x[N, 3, 6, 6], y[N, 4].
std::string model_of(const std::vector<Weight>& weights) {
  Writer w;
  w.input("x", {"N", kIn, kSize, kSize}).output("y", {"N", 4});
  for (const Weight& weight : weights) w.floats(weight.name, weight.shape, weight.values);
  set_list(w.node("Conv", {"x", "conv.w"}, {"c"}, "conv"), "pads", {1, 1, 1, 1});
  w.node("BatchNormalization", {"c", "bn.scale", "bn.bias", "bn.mean", "bn.var"}, {"n"}, "bn");
  w.node("Relu", {"n"}, {"r"}, "relu");
  w.node("GlobalAveragePool", {"r"}, {"p"}, "pool");
  w.node("Flatten", {"p"}, {"f"}, "flatten");
  w.node("MatMul", {"f", "fc.w"}, {"y"}, "fc");
  return w.bytes();
}

std::string safetensors_of(const std::vector<Weight>& weights, const std::string& dtype = "F32") {
  nlohmann::json header;
  std::string data;
  for (const Weight& w : weights) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(w.values.data()), w.values.size() * sizeof(float));
    header[w.name] = {{"dtype", dtype}, {"shape", w.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data;
}

struct Models : Folder {
  Models() {
    add("old.onnx", model_of(weights(1)));
    add("new.onnx", model_of(weights(100)));
    add("new.safetensors", safetensors_of(weights(100)));
    write_numbers(at("x.npy"), {2, kIn, kSize, kSize});
    REQUIRE(compile("old", "--refit", "plan").status == 0);
  }
  std::string at(const std::string& file) const { return (path / file).string(); }
  Outcome compile(const std::string& model, const std::string& options, const std::string& plan) const {
    return run_oclc(at(model + ".onnx") + " --target cpu -o " + at(plan + ".bin") + " " + options);
  }
  Outcome refit(const std::string& file, const std::string& options = "") const {
    return run_oclc("refit " + at("plan.bin") + " " + at(file) + " -o " + at("refitted.bin") + " " + options);
  }
  std::vector<double> run_plan(const std::string& plan) const {
    const Outcome o = run(OCLC_BINARY_DIR "/bin/oclrun " + at(plan + ".bin") + " --device cpu --input x=" + at("x.npy") +
                          " --output y=" + at(plan + ".npy") + " -q");
    INFO(o.text);
    REQUIRE(o.status == 0);
    const io::Tensor y = io::read_npy(at(plan + ".npy"));
    std::vector<double> values;
    for (std::uint64_t i = 0; i < y.elements(); ++i) values.push_back(y.at(i));
    return values;
  }
  void check_equal(const std::vector<double>& a, const std::vector<double>& b) const {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-5);
  }
  // With the message's first words after the file's name.
  void refuses(const Outcome& o, int status, const std::string& text) const {
    CHECK(o.status == status);
    CHECK(o.text == "oclc: error: " + text + "\n");
  }
};

}  // namespace

TEST_CASE("a plan of --refit gives what the model gives, and with new weights what the new model gives") {
  const Models m;
  REQUIRE(m.compile("old", "", "plain_old").status == 0);
  REQUIRE(m.compile("new", "", "plain_new").status == 0);
  const auto was = m.run_plan("plain_old"), wanted = m.run_plan("plain_new");
  m.check_equal(m.run_plan("plan"), was);
  for (const std::string file : {"new.onnx", "new.safetensors"}) {
    const Outcome o = m.refit(file);
    CHECK(o.text == m.at("refitted.bin") + ": weights: 6 replaced, 0 kept\n");
    REQUIRE(o.status == 0);
    m.check_equal(m.run_plan("refitted"), wanted);
  }
  m.check_equal(m.run_plan("plan"), was);  // the file that was read stays as it was
  CHECK(std::abs(was[0] - wanted[0]) > 1e-3);
}

TEST_CASE("refitting changes no kernel, and the plan's own file may be the new one") {
  const Models m;
  const auto programs = [&](const std::string& plan) {
    return nlohmann::json::parse(oclc_stdout("info --json " + m.at(plan + ".bin")).text)["entries"];
  };
  const auto before = programs("plan");
  REQUIRE(run_oclc("refit " + m.at("plan.bin") + " " + m.at("new.safetensors") + " -o " + m.at("plan.bin")).status == 0);
  CHECK(programs("plan") == before);
  REQUIRE(m.compile("new", "", "plain_new").status == 0);
  m.check_equal(m.run_plan("plan"), m.run_plan("plain_new"));
}

TEST_CASE("a plan whose weights were folded is refused, with what to do") {
  const Models m;
  REQUIRE(m.compile("old", "", "plan").status == 0);
  m.refuses(
      m.refit("new.onnx"), 3,
      m.at("plan.bin") +
          ": wanted a plan that was compiled with --refit, found one whose weights were folded, packed and transformed when "
          "it was compiled; compile the model again, with --refit or with the new weights");
}

TEST_CASE("weights of another shape or type, too few, too many and none are refused") {
  const Models m;
  auto other = weights(100);
  other[5] = {"fc.w", {4, kOut}, other[5].values};
  m.add("w.safetensors", safetensors_of(other));
  m.refuses(m.refit("w.safetensors"), 3, m.at("w.safetensors") + ": weight 'fc.w': wanted f32[5, 4], found f32[4, 5]");
  m.add("w.safetensors", safetensors_of(weights(100), "I32"));
  m.refuses(m.refit("w.safetensors"), 3, m.at("w.safetensors") + ": weight 'bn.bias': wanted f32[5], found i32[5]");
  auto few = weights(100);
  few.erase(few.begin() + 1);
  m.add("w.safetensors", safetensors_of(few));
  m.refuses(
      m.refit("w.safetensors"), 3,
      m.at("w.safetensors") + ": wanted all 6 weights of the plan, found none called 'bn.scale'; --partial keeps their values");
  auto many = weights(100);
  many.push_back({"fc.v", {1}, {1}});
  m.add("w.safetensors", safetensors_of(many));
  m.refuses(
      m.refit("w.safetensors"), 3,
      m.at("w.safetensors") +
          ": wanted weights that the plan can change, found 'fc.v' beside them (did you mean 'fc.w'?): what is no "
          "floating-point tensor of rank 1 or more, or was known when the model was read, is a constant of the plan; leave "
          "it out of the file, or give --partial");
  m.add("w.safetensors", safetensors_of({{"a", {1}, {1}}}));
  m.refuses(
      m.refit("w.safetensors", "--partial"), 3,
      m.at("w.safetensors") +
          ": wanted weights of the plan, which has 'bn.bias', 'bn.mean', 'bn.scale', 'bn.var', 'conv.w', 'fc.w', found none "
          "of them");
}

TEST_CASE("--partial replaces what fits and says what it leaves") {
  const Models m;
  auto part = weights(100);
  part.resize(1);
  part.push_back({"extra", {1}, {1}});
  m.add("w.safetensors", safetensors_of(part));
  const Outcome o = m.refit("w.safetensors", "--partial");
  CHECK(o.status == 0);
  CHECK(has(o.text, "these weights keep their values: 'bn.bias', 'bn.mean', 'bn.scale', 'bn.var', 'fc.w'\n"));
  CHECK(has(o.text, "the plan has no weights called 'extra'\n"));
  CHECK(has(o.text, ": weights: 1 replaced, 5 kept\n"));
  auto mixed = weights(1);
  mixed[0] = weights(100)[0];
  m.add("mixed.onnx", model_of(mixed));
  REQUIRE(m.compile("mixed", "", "mixed").status == 0);
  m.check_equal(m.run_plan("refitted"), m.run_plan("mixed"));
}

TEST_CASE("weights of a recurrent plan are replaced, and its carried state stays as it was") {
  const Folder m;
  const auto model = [](std::uint32_t seed) {
    Writer w;
    w.input("x", {1, 4}).input("h", {1, 4}).output("h_next", {1, 4}).floats("w", {4, 4}, some(16, seed));
    w.node("MatMul", {"h", "w"}, {"p"}, "fc");
    w.node("Add", {"p", "x"}, {"h_next"}, "add");
    return w.bytes();
  };
  const auto at = [&](const std::string& file) { return (m.path / file).string(); };
  m.add("old.onnx", model(1));
  m.add("new.onnx", model(100));
  write_numbers(at("x.npy"), {3, 1, 4});
  const auto compile = [&](const std::string& name, const std::string& plan, const std::string& options) {
    REQUIRE(run_oclc(at(name) + " --target cpu --carry h_next=h -o " + at(plan) + " " + options).status == 0);
  };
  const auto last = [&](const std::string& plan) {
    const Outcome o = run(OCLC_BINARY_DIR "/bin/oclrun " + at(plan) + " --device cpu --steps 3 --input x=" + at("x.npy") +
                          " --output h=" + at("h.npy") + " -q");
    INFO(o.text);
    REQUIRE(o.status == 0);
    const io::Tensor h = io::read_npy(at("h.npy"));
    REQUIRE(h.elements() == 4);
    return std::vector<double>{h.at(0), h.at(1), h.at(2), h.at(3)};
  };
  compile("old.onnx", "plan.bin", "--refit");
  compile("new.onnx", "wanted.bin", "");
  const Outcome o = run_oclc("refit " + at("plan.bin") + " " + at("new.onnx") + " -o " + at("refitted.bin"));
  CHECK(o.text == at("refitted.bin") + ": weights: 1 replaced, 0 kept\n");
  const auto was = last("plan.bin"), got = last("refitted.bin"), wanted = last("wanted.bin");
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(got[i] - wanted[i]) < 1e-5);
  CHECK(std::abs(was[0] - wanted[0]) > 1e-3);
}

TEST_CASE("command lines that refit cannot mean are usage errors") {
  const Models m;
  m.refuses(run_oclc("refit " + m.at("plan.bin")), 2, "wanted a plan and a file of weights; see oclc --help");
  m.refuses(run_oclc("refit " + m.at("plan.bin") + " " + m.at("new.onnx")), 2, "wanted -o FILE; see oclc --help");
  m.refuses(m.refit("x.npy"), 2,
            "wanted WEIGHTS as .safetensors, .npz, .onnx or .pt2, found '" + m.at("x.npy") + "'; see oclc --help");
  m.refuses(m.compile("old", "--refit --train mse", "plan"), 2,
            "--refit does not go with --train, whose plans have parameters; see oclc --help");
}
