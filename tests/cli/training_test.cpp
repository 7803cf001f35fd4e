// oclc --train, and what oclrun says about the plan's data.
#include <cmath>
#include <cstring>

#include "tests/cli/cli.h"
#include "tools/io/npy.h"

namespace {

using namespace oclc;
using namespace oclc::test;

const std::string kOclrun = OCLC_BINARY_DIR "/bin/oclrun";

template <class T>
void write(const std::string& path, oclc_dtype dtype, const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  io::Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  t.data.resize(values.size() * sizeof(T));
  std::memcpy(t.data.data(), values.data(), t.data.size());
  io::write_npy(path, t);
}

// A classifier of [N, 4] into three classes, trained with the given loss; eight samples of class x[0] + 2 x[1] modulo 3.
struct Classifier : Folder {
  std::vector<float> x;
  std::vector<std::int64_t> labels;
  Outcome compiled;

  explicit Classifier(const std::string& loss = "cross_entropy,ignore_index=-100") {
    Writer w;
    w.input("x", {"N", 4}).output("y", {"N", 3});
    w.floats("w1", {4, 5}, std::vector<float>{0.5F,  -0.3F, 0.2F, 0.7F,  -0.6F, 0.1F,  0.4F, -0.2F, 0.3F, 0.8F,
                                              -0.5F, 0.6F,  0.9F, -0.4F, 0.2F,  -0.1F, 0.3F, 0.5F,  0.7F, -0.8F});
    w.floats("w2", {5, 3}, {0.3F, -0.4F, 0.2F, 0.5F, 0.1F, -0.6F, 0.7F, -0.2F, 0.4F, -0.3F, 0.6F, 0.8F, 0.2F, -0.5F, 0.1F});
    w.node("MatMul", {"x", "w1"}, {"h"}, "hidden");
    w.node("Relu", {"h"}, {"r"}, "act");
    w.node("MatMul", {"r", "w2"}, {"y"}, "head");
    add("model.onnx", w.bytes());
    for (int i = 0; i < 8; ++i) {
      for (int bit = 0; bit < 4; ++bit) x.push_back(static_cast<float>(i >> bit & 1));
      labels.push_back(((i & 1) + (i & 2)) % 3);
    }
    write(at("x.npy"), OCLC_F32, {8, 4}, x);
    write(at("labels.npy"), OCLC_I64, {8}, labels);
    compiled = run_oclc(at("model.onnx") + " --target cpu --train " + loss + " --optimizer sgd,lr=0.5 -o " + at("plan.bin"));
  }

  std::string at(const std::string& file) const { return (path / file).string(); }
  std::string data() const { return " --data x=" + at("x.npy") + " --data labels=" + at("labels.npy"); }
  Outcome oclrun(const std::string& arguments) const {
    return run(kOclrun + " " + at("plan.bin") + " --device cpu --no-shuffle " + arguments);
  }
  void refuses(const std::string& arguments, int status, const std::string& text) const {
    const Outcome o = oclrun(arguments);
    CHECK(o.status == status);
    CHECK(o.text == "oclrun: error: " + text + "\n");
  }
};

double first_loss(const std::string& text) {
  const auto at = text.find("first_loss=");
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + 11));
}

double last_loss(const std::string& text) {
  const auto at = text.find(" loss=");
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + 6));
}

}  // namespace

TEST_CASE("--train adds entry points that learn") {
  const Classifier c;
  CAPTURE(c.compiled.text);
  REQUIRE(c.compiled.status == 0);
  const Outcome info = run_oclc("info " + c.at("plan.bin"));
  for (const char* part : {"entry predict", "entry train_step", "entry eval_step",
                           "input   labels: i64[N] from 0 to 2 or -100\n", "output  loss: f32[]\n"})
    CHECK_MESSAGE(has(info.text, part), part);
  const Outcome o = c.oclrun("--steps 60 --batch 8" + c.data());
  CAPTURE(o.text);
  REQUIRE(o.status == 0);
  CHECK(first_loss(o.text) > 0.8);
  CHECK(last_loss(o.text) < 0.5 * first_loss(o.text));
}

TEST_CASE("--mixed trains with activations in 16 bits and a loss scale among the state") {
  const Classifier c;
  for (const std::string mixed : {"f16,growth_interval=20", "bf16"}) {
    CAPTURE(mixed);
    REQUIRE(run_oclc(c.at("model.onnx") + " --target cpu --train cross_entropy --optimizer sgd,lr=0.5 --mixed " + mixed +
                     " -o " + c.at("plan.bin"))
                .status == 0);
    CHECK(has(run_oclc("info " + c.at("plan.bin")).text, "loss_scale.good_steps") == (mixed != "bf16"));
    const Outcome o = c.oclrun("--steps 60 --batch 8" + c.data());
    CAPTURE(o.text);
    REQUIRE(o.status == 0);
    CHECK(last_loss(o.text) < 0.5 * first_loss(o.text));
  }
}

TEST_CASE("case 111: a label out of range is refused with its place and value, unless the loss ignores it") {
  Classifier c;
  REQUIRE(c.compiled.status == 0);
  c.labels[5] = -100;
  write(c.at("labels.npy"), OCLC_I64, {8}, c.labels);
  CHECK(c.oclrun("--steps 2 --batch 8" + c.data()).status == 0);
  const std::string step = "--entry train_step --input x=" + c.at("x.npy") + " --input labels=" + c.at("labels.npy");
  CHECK(run(kOclrun + " " + c.at("plan.bin") + " --device cpu " + step).status == 0);
  for (const std::int64_t wrong : {std::int64_t{3}, std::int64_t{-1}, INT64_MAX}) {
    c.labels[6] = wrong;
    write(c.at("labels.npy"), OCLC_I64, {8}, c.labels);
    const std::string text =
        c.at("labels.npy") + ": element [6]: wanted 0 to 2 or -100 for input 'labels', found " + std::to_string(wrong);
    c.refuses("--steps 2 --batch 8" + c.data(), 3, text);
    const Outcome once = run(kOclrun + " " + c.at("plan.bin") + " --device cpu " + step);
    CHECK(once.status == 3);
    CHECK(once.text == "oclrun: error: " + text + "\n");
  }
  const Classifier strict("cross_entropy");
  REQUIRE(strict.compiled.status == 0);
  write(strict.at("labels.npy"), OCLC_I64, {8}, std::vector<std::int64_t>{0, 1, 2, -100, 0, 0, 0, 0});
  strict.refuses("--steps 2 --batch 8" + strict.data(), 3,
                 strict.at("labels.npy") + ": element [3]: wanted 0 to 2 for input 'labels', found -100");
}

TEST_CASE("case 111: a batch of another size than the data or the plan allows is refused") {
  const Classifier c;
  REQUIRE(c.compiled.status == 0);
  c.refuses("--steps 2 --batch 9" + c.data(), 3, c.at("x.npy") + ": has 8 samples, a batch takes 9");
  c.refuses("--steps 2 --batch 4 --dim N=8" + c.data(), 2, "--batch: --dim N=8 says otherwise, found 4; see oclrun --help");
  REQUIRE(run_oclc(c.at("model.onnx") + " --target cpu --dim N=4 --train cross_entropy -o " + c.at("plan.bin")).status == 0);
  CHECK(c.oclrun("--steps 2" + c.data()).status == 0);
  c.refuses("--steps 2 --batch 8" + c.data(), 2, "--batch: the plan was compiled for batches of 4, found 8; see oclrun --help");
}

TEST_CASE("case 111: --check-nan names the input that holds a NaN, and the first node that makes one") {
  Classifier c;
  REQUIRE(c.compiled.status == 0);
  CHECK(c.oclrun("--steps 2 --batch 8 --check-nan" + c.data()).status == 0);
  const Outcome made = c.oclrun("--steps 9 --batch 8 --check-nan --set lr=1e38" + c.data());
  CHECK(made.status == 7);
  for (const char* part : {"oclrun: error: step ", ": node loss", " of entry point 'train_step', made a NaN: buffer '",
                           "; what it read holds no NaN, but there are infinities, first made by node head"})
    CHECK_MESSAGE(has(made.text, part), made.text);
  c.x[4 * 5 + 2] = std::nanf("");
  write(c.at("x.npy"), OCLC_F32, {8, 4}, c.x);
  c.refuses("--steps 2 --batch 8 --check-nan" + c.data(), 7,
            "step 1: input 'x' holds a NaN at element 22 (1 of 32), before anything ran");
}

TEST_CASE("case 112: --train lists all operators without a gradient") {
  Folder folder;
  Writer w;
  w.input("x", {2, 8}).output("y", {2, 12});
  w.floats("b", {8}, std::vector<float>(8, 0.5F));
  w.ints("sides", {4}, {0, 1, 0, 1});
  w.node("Add", {"x", "b"}, {"s"}, "shift");
  set_text(w.node("Pad", {"s", "sides"}, {"a"}, "repeat"), "mode", "edge");
  set_text(w.node("Pad", {"a", "sides"}, {"y"}, "mirror"), "mode", "reflect");
  folder.add("model.onnx", w.bytes());
  const std::string file = (folder.path / "model.onnx").string(), plan = (folder.path / "plan.bin").string();
  const Outcome outcome = run_oclc(file + " --target cpu --train mse -o " + plan);
  CHECK(outcome.status == 4);
  CHECK_MESSAGE(has(outcome.text, "node 'repeat' (pad)"), outcome.text);
  CHECK_MESSAGE(has(outcome.text, "node 'mirror' (pad)"), outcome.text);
  CHECK(!std::filesystem::exists(plan));
}

TEST_CASE("training options that do not fit are refused with what was wanted") {
  const ModelFolder folder;
  const std::string model = folder.model() + " --target cpu -o " + folder.at("plan.bin") + " ";
  const auto refused = [&](const std::string& options, int status, const std::string& part) {
    const Outcome o = run_oclc(model + options);
    CHECK(o.status == status);
    CHECK_MESSAGE(has(o.text, part), o.text);
    CHECK(!std::filesystem::exists(folder.at("plan.bin")));
  };
  refused("--optimizer sgd", 2, "--optimizer means something with --train LOSS only");
  refused("--train hinge", 2,
          "wanted one of cross_entropy, nll, mse, l1, huber, bce_with_logits, output, found --train 'hinge'");
  refused("--train mse,delta=1", 2, "wanted nothing behind 'mse', found --train 'delta=1'");
  refused("--train huber,delta=much", 2, "wanted a number for delta, found --train 'delta=much'");
  refused("--train mse --optimizer sgd,speed=3", 2, "found --optimizer 'speed=3'");
  refused("--mixed f16", 2, "--mixed means something with --train LOSS only");
  refused("--train mse --mixed f8", 2, "wanted one of f16, bf16, found --mixed 'f8'");
  refused("--train mse --mixed bf16,scale=8", 2, "wanted nothing behind 'bf16', found --mixed 'scale=8'");
  refused("--train mse --mixed f16,growth=8", 2, "wanted KEY=NUMBER with one of scale, growth_interval for f16, found");
  refused("--train mse --train-output z", 2, "wanted an output of the model as what the loss reads: y, found 'z'");
  refused("--train mse --freeze w --freeze one --freeze two", 3, "wanted parameters to train, found none");
  Writer named;
  named.input("labels", {"N", 4}).output("y", {"N", 4});
  named.floats("w", {4, 4}, std::vector<float>(16, 0.25F));
  named.node("MatMul", {"labels", "w"}, {"y"}, "product");
  folder.add("named.onnx", named.bytes());
  const Outcome o = run_oclc(folder.at("named.onnx") + " --target cpu --train mse -o " + folder.at("plan.bin"));
  CHECK(o.status == 3);
  CHECK_MESSAGE(has(o.text, "wanted a model without an input 'labels', the name of the loss's targets, found one"), o.text);
}

TEST_CASE("held-out data are looked at between steps: loss, accuracy, the best state, and an end when it gets no better") {
  const Classifier c;
  REQUIRE(c.compiled.status == 0);
  const std::string held_out = " --eval-data x=" + c.at("x.npy") + " --eval-data labels=" + c.at("labels.npy");
  const Outcome o = c.oclrun("--steps 40 --batch 4 --eval-every 10" + c.data() + held_out + " --log " + c.at("log.csv") +
                             " --save-best " + c.at("best") + " --save-state " + c.at("state"));
  CAPTURE(o.text);
  REQUIRE(o.status == 0);
  const std::regex line("eval: step=(\\d+) loss=([0-9.e-]+) accuracy=([0-9.]+) %\n");
  std::vector<std::pair<std::string, double>> evals;
  for (auto at = std::sregex_iterator(o.text.begin(), o.text.end(), line); at != std::sregex_iterator(); ++at)
    evals.emplace_back((*at)[1], std::stod((*at)[2]));
  REQUIRE(evals.size() == 4);
  CHECK(evals[0].first == "10");
  CHECK(evals[3].first == "40");
  CHECK(evals[3].second < evals[0].second);
  CHECK(has(o.text, " best_step=40"));
  const std::string log = read_bytes(c.path / "log.csv");
  CHECK(log.starts_with("step,loss,seconds,eval_loss,eval_accuracy\n"));
  CHECK(std::filesystem::exists(c.path / "best"));
  // The same by the entry point itself: two batches of four are all eight samples.
  const Outcome again = c.oclrun("--entry eval_step --steps 2 --batch 4 --json --load-state " + c.at("state") + c.data());
  REQUIRE(again.status == 0);
  CHECK(nlohmann::json::parse(again.text)["train"]["means"]["loss"].get<double>() ==
        doctest::Approx(evals[3].second).epsilon(1e-4));
  // Batches of three leave one of two samples, which counts as well.
  const Outcome odd = c.oclrun("--steps 1 --batch 3 --json --set lr=0 --load-state " + c.at("state") + c.data() + held_out);
  REQUIRE(odd.status == 0);
  const nlohmann::json found = nlohmann::json::parse(odd.text)["train"]["evaluations"];
  REQUIRE(found.size() == 1);
  CHECK(found[0]["loss"].get<double>() == doctest::Approx(evals[3].second).epsilon(1e-4));
  const Outcome stopped = c.oclrun("--steps 100 --batch 8 --set lr=0 --eval-every 1 --patience 3" + c.data() + held_out);
  CHECK(has(stopped.text, "train: steps=4 "));
  CHECK(has(stopped.text, " best_step=1 stopped=patience\n"));
  c.refuses("--steps 2 --batch 4 --eval-every 2" + c.data(), 2,
            "--eval-every: wanted --eval-data NAME=FILE with it, the data to look at; see oclrun --help");
  c.refuses(
      "--steps 2 --batch 4 --eval-data x=" + c.at("x.npy") + c.data(), 2,
      "--eval-data: entry point 'eval_step' has input 'labels' [N] as well: give --eval-data labels=FILE; see oclrun --help");
  c.refuses("--steps 2 --batch 4" + held_out + " --eval-data z=" + c.at("x.npy") + c.data(), 2,
            "--eval-data: entry point 'eval_step' has no input 'z'; see oclrun --help");
}

TEST_CASE("bytes become floats by --scale") {
  const Classifier c;
  std::vector<std::uint8_t> bytes;
  for (const float v : c.x) bytes.push_back(static_cast<std::uint8_t>(v * 255));
  write(c.at("bytes.npy"), OCLC_U8, {8, 4}, bytes);
  const std::string labels = " --data labels=" + c.at("labels.npy");
  const Outcome floats = c.oclrun("--steps 3 --batch 4 --json --data x=" + c.at("x.npy") + labels),
                scaled = c.oclrun("--steps 3 --batch 4 --json --scale x=1/255 --data x=" + c.at("bytes.npy") + labels);
  REQUIRE(scaled.status == 0);
  CHECK(nlohmann::json::parse(scaled.text)["train"]["loss"].get<double>() ==
        doctest::Approx(nlohmann::json::parse(floats.text)["train"]["loss"].get<double>()).epsilon(1e-5));
  c.refuses("--steps 3 --batch 4 --data x=" + c.at("bytes.npy") + labels, 3,
            c.at("bytes.npy") + ": wanted float32 for input 'x', found uint8; --scale x=FACTOR converts");
  c.refuses("--steps 3 --batch 4 --scale x=a --data x=" + c.at("bytes.npy") + labels, 2,
            "--scale: wanted NAME=FACTOR[,OFFSET], found 'x=a'; see oclrun --help");
  c.refuses("--steps 3 --batch 4 --scale labels=2 --data x=" + c.at("x.npy") + labels, 3,
            c.at("labels.npy") + ": wanted numbers for a float32 input with --scale, found int64 for input 'labels' of int64");
}

TEST_CASE("a Softmax in front of a loss that takes logits is said, and a prefix that freezes nothing is refused") {
  const ModelFolder folder;
  const std::string compile = folder.model() + " --target cpu -o " + folder.at("p.bin");
  const Outcome o = run_oclc(compile + " --train cross_entropy");
  CHECK(o.status == 0);
  CHECK(has(o.text,
            "oclc: warning: the loss cross_entropy takes logits, and output 'y' is made by a softmax; train on what goes into "
            "it (--train-output)\n"));
  CHECK_FALSE(has(run_oclc(compile + " --train mse").text, "warning"));
  const Outcome frozen = run_oclc(compile + " --train mse --freeze v");
  CHECK(frozen.status == 2);
  CHECK(has(frozen.text, "wanted frozen parameters' names to begin so; there are "));
  CHECK(has(frozen.text, ", found 'v'"));
}
