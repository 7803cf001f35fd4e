#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>

#include "tests/process.h"
#include "tests/runtime/train_plan.h"
#include "tools/io/npy.h"

using namespace oclc;
using namespace oclc::test;
using nlohmann::json;

namespace train_test {

const std::string kOclrun = std::string(OCLC_BINARY_DIR) + "/bin/oclrun ";

template <class T>
void write_npy(const std::string& path, oclc_dtype dtype, const std::vector<std::int64_t>& shape,
               const std::vector<T>& values) {
  io::Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  t.data.resize(values.size() * sizeof(T));
  std::memcpy(t.data.data(), values.data(), t.data.size());
  io::write_npy(path, t);
}

// The plan of train_plan.h with samples of y = 2 u - v + 1 on a grid.
struct Fixture {
  Folder folder;
  std::string plan = file("plan.bin");
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  std::string data = " --data x=" + file("x.npy") + " --data labels=" + file("labels.npy");

  explicit Fixture(std::int64_t samples = 24) {
    const auto bytes = train_plan_bytes();
    folder.add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    for (std::int64_t i = 0; i < samples; ++i) {
      x.push_back(static_cast<float>(i % 2));
      x.push_back(static_cast<float>(i / 2 % 2));
      labels.push_back(static_cast<std::int32_t>(2 * x[x.size() - 2] - x.back() + 1));
    }
    write_npy(file("x.npy"), OCLC_F32, {samples, 2}, x);
    write_npy(file("labels.npy"), OCLC_I32, {samples}, labels);
  }
  std::string file(const std::string& name) const { return (folder.path / name).string(); }
  Outcome run(const std::string& arguments) const { return test::run(kOclrun + plan + " " + arguments); }
  void error(const std::string& arguments, int status, const std::string& text) const {
    const Outcome o = run(arguments);
    CHECK(o.status == status);
    CHECK(o.text == "oclrun: error: " + text + "\n");
  }
};

std::vector<std::vector<double>> csv(const std::string& path, std::string& head) {
  std::ifstream in(path);
  std::getline(in, head);
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(in, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(std::stod(cell));
  }
  return rows;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Philox4x32-10 as its paper gives it.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key, std::array<std::uint32_t, 4> c) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

TEST_CASE("--steps trains on shuffled batches, in the documented order") {
  CHECK(philox({0, 0}, {0, 0, 0, 0}) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const Fixture f(10);
  const Outcome o = f.run("--steps 12 --batch 4 --seed 5 --set lr=0.25" + f.data + " --log " + f.file("log.csv"));
  CAPTURE(o.text);
  REQUIRE(o.status == 0);
  CHECK(o.text.starts_with("train: steps=12 loss="));
  CHECK(o.text.find(" samples_per_s=") != o.text.npos);
  std::string head;
  const auto rows = csv(f.file("log.csv"), head);
  CHECK(head == "step,loss,correct,lr,seconds");
  REQUIRE(rows.size() == 12);
  std::vector<std::size_t> order;
  double b = 0, w = 0, v = 0;
  for (std::uint32_t step = 0; step < 12; ++step) {
    double loss = 0, gb = 0, gu = 0, gv = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t place = step * 4 + i, epoch = place / 10;
      if (place % 10 == 0) {
        order.resize(10);
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::uint32_t k = 9; k > 0; --k) {
          const auto bits = philox({5, 0}, {k, 0, epoch, 0});
          const long double r = (static_cast<long double>(bits[1]) * 4294967296.0L + bits[0]) / 18446744073709551616.0L;
          std::swap(order[k], order[static_cast<std::size_t>(r * (k + 1))]);
        }
      }
      const std::size_t s = order[place % 10];
      const double u = f.x[2 * s], t = f.x[2 * s + 1], e = b + w * u + v * t - f.labels[s];
      loss += e * e / 4, gb += e / 2, gu += e * u / 2, gv += e * t / 2;
    }
    b -= 0.25 * gb, w -= 0.25 * gu, v -= 0.25 * gv;
    CHECK(rows[step][0] == step + 1);
    CHECK(rows[step][1] == doctest::Approx(loss).epsilon(1e-4));
    CHECK(rows[step][3] == 0.25);
  }
}

TEST_CASE("linear, exponential and one-cycle rules have the documented values") {
  const Fixture f;
  const auto values = [&](const std::string& rule) {
    std::vector<double> list;
    const Outcome o = f.run("--steps 11 --batch 4 --set lr=" + rule + f.data + " --log " + f.file("log.csv"));
    CHECK_MESSAGE(o.status == 0, o.text);
    std::string head;
    for (const auto& row : csv(f.file("log.csv"), head)) list.push_back(row[3]);
    REQUIRE(list.size() == 11);
    return list;
  };
  const auto linear = values("linear:1,steps=10,end=0.5");
  CHECK(linear[0] == doctest::Approx(1));
  CHECK(linear[4] == doctest::Approx(0.8));
  CHECK(linear[10] == doctest::Approx(0.5));
  const auto exponential = values("exponential:1,factor=0.25,every=4,warmup=2");
  CHECK(exponential[0] == doctest::Approx(0.5));
  CHECK(exponential[2] == doctest::Approx(1));
  CHECK(exponential[4] == doctest::Approx(0.5));
  CHECK(exponential[6] == doctest::Approx(0.25));
  const auto cycle = values("onecycle:1,steps=10");
  CHECK(cycle[0] == doctest::Approx(0.04));
  CHECK(cycle[3] == doctest::Approx(1));
  CHECK(cycle[10] == doctest::Approx(1.0 / 250000));
  for (int i = 0; i < 3; ++i) CHECK(cycle[static_cast<std::size_t>(i)] < cycle[static_cast<std::size_t>(i) + 1]);
  for (int i = 3; i < 10; ++i) CHECK(cycle[static_cast<std::size_t>(i)] > cycle[static_cast<std::size_t>(i) + 1]);
}

TEST_CASE("a resumed run continues where the checkpoint was written") {
  const Fixture f;
  const std::string common = " --batch 5 --seed 3 --set lr=cosine:0.3,steps=40,end=0.01,warmup=7" + f.data;
  REQUIRE(f.run("--steps 30 --save-state " + f.file("whole") + common).status == 0);
  REQUIRE(f.run("--steps 13 --save-state " + f.file("part") + " --save-every 6" + common).status == 0);
  const Outcome o = f.run("--entry train_step --steps 17 --load-state " + f.file("part") + " --save-state " + f.file("part") +
                          " --log " + f.file("log.json") + common);
  CAPTURE(o.text);
  CHECK(o.status == 0);
  CHECK(contents(f.file("part")) == contents(f.file("whole")));
  const json log = json::parse(contents(f.file("log.json")));
  CHECK(log["columns"] == json({"step", "loss", "correct", "lr", "seconds"}));
  REQUIRE(log["rows"].size() == 17);
  CHECK(log["rows"][0][0] == 14);
  const double rate = 0.01 + 0.29 * (1 + std::cos(M_PI * (13 - 7) / 40)) / 2;
  CHECK(log["rows"][0][3].get<double>() == doctest::Approx(rate));
}

TEST_CASE("hyper-parameters follow their rules") {
  const Fixture f;
  const auto rates = [&](const std::string& rule) {
    REQUIRE(f.run("--steps 6 --batch 2 --set lr=" + rule + f.data + " --log " + f.file("log.csv")).status == 0);
    std::string head;
    std::vector<double> list;
    for (const auto& row : csv(f.file("log.csv"), head)) list.push_back(row[3]);
    return list;
  };
  CHECK(rates("constant:0.5") == std::vector<double>(6, 0.5));
  CHECK(rates("step:0.4,every=2,factor=0.5") == std::vector<double>{0.4, 0.4, 0.2, 0.2, 0.1, 0.1});
  CHECK(rates("0.4,warmup=4") == std::vector<double>{0.1, 0.2, 0.4 * 3 / 4, 0.4, 0.4, 0.4});
  const auto cosine = rates("cosine:0.4,steps=4,end=0.2");
  CHECK(cosine[0] == doctest::Approx(0.4));
  CHECK(cosine[2] == doctest::Approx(0.3));
  CHECK(cosine[4] == doctest::Approx(0.2));
  CHECK(cosine[5] == doctest::Approx(0.2));
}

TEST_CASE("case 111: wrong data and settings are refused with what was wanted") {
  const Fixture f;
  const std::string labels = " --data labels=" + f.file("labels.npy"), x = " --data x=" + f.file("x.npy");
  const std::string help = "; see oclrun --help";
  f.error("--steps 3" + f.data, 2, "input 'x' [N, 2]: its batch size is open; give --batch N" + help);
  f.error("--steps 3 --batch 30" + f.data, 3, f.file("x.npy") + ": has 24 samples, a batch takes 30");
  f.error("--steps 3 --batch 3 --dim N=4" + f.data, 2, "--batch: --dim N=4 says otherwise, found 3" + help);
  f.error("--steps 3 --batch 3" + x, 2,
          "input 'labels' [N] has no value: give --data labels=FILE, --input labels=FILE or --random" + help);
  f.error("--steps 3 --batch 3 --data z=" + f.file("x.npy"), 2,
          "--data: entry point 'train_step' has no input 'z'; it has: x, labels" + help);
  f.error("--steps 3 --batch 3 --data labels=" + f.file("x.npy") + x, 3,
          f.file("x.npy") + ": wanted int32 for input 'labels', found float32");
  f.error("--steps 3 --batch 3 --set momentum=1" + f.data, 2,
          "no scalar input or variable 'momentum'; the plan's scalars: b, lr");
  f.error("--steps 3 --batch 3 --set lr=nan" + f.data, 2, "--set lr: wanted a finite number, found 'nan'" + help);
  f.error("--steps 3 --batch 3 --set lr=sine:1" + f.data, 2,
          "--set lr: wanted constant, step, cosine, linear, exponential or onecycle before the colon, found 'sine'" + help);
  f.error("--steps 3 --batch 3 --set lr=step:1,every=3" + f.data, 2,
          "--set lr: wanted factor=NUMBER in 'step:1,every=3'" + help);
  f.error("--steps 3 --batch 3 --set lr=1,decay=3" + f.data, 2, "--set lr: unknown key 'decay' in '1,decay=3'" + help);
  f.error("--steps 3 --batch 3 --save-every 2" + f.data, 2, "--save-every: wanted --save-state FILE with it" + help);
  f.error("--data x=" + f.file("x.npy"), 2, "--data: wanted --steps N with it" + help);
  f.error("--steps 3 --log a.txt" + f.data, 2, "--log: wanted a file ending in .csv or .json, found 'a.txt'" + help);
  f.error("--steps 3 --verify x" + f.data, 2, "--steps does not go with --verify" + help);
  f.error("--steps 3 --batch 3 --log " + f.file("none/log.csv") + f.data, 6, f.file("none/log.csv") + ": cannot write the log");
  f.error("--steps 3 --state-to-onnx o.onnx" + f.data, 2,
          "--state-to-onnx: wanted --model FILE.onnx with it, the model that the plan was compiled from" + help);

  write_npy<float>(f.file("wide.npy"), OCLC_F32, {24, 3}, std::vector<float>(72));
  f.error("--steps 3 --batch 3 --data x=" + f.file("wide.npy") + labels, 3,
          f.file("wide.npy") + ": input 'x': wanted shape [N, 2], found [3, 3]");
  write_npy<float>(f.file("flat.npy"), OCLC_F32, {48}, std::vector<float>(48));
  f.error("--steps 3 --batch 3 --data x=" + f.file("flat.npy") + labels, 3,
          f.file("flat.npy") + ": wanted samples along the first axis of [N, 2] for input 'x', found shape [48]");
  write_npy<float>(f.file("short.npy"), OCLC_F32, {23, 2}, std::vector<float>(46));
  f.error("--steps 3 --batch 3 --data x=" + f.file("short.npy") + labels, 3,
          f.file("labels.npy") + ": has 24 samples, " + f.file("short.npy") + " has 23");
  auto wrong = f.labels;
  wrong[17] = 4;
  write_npy(f.file("wrong.npy"), OCLC_I32, {24}, wrong);
  f.error("--steps 3 --batch 3 --data labels=" + f.file("wrong.npy") + x, 3,
          f.file("wrong.npy") + ": element [17]: wanted 0 to 3 for input 'labels', found 4");
  wrong[17] = -1;
  write_npy(f.file("wrong.npy"), OCLC_I32, {24}, wrong);
  f.error("--steps 3 --batch 3 --data labels=" + f.file("wrong.npy") + x, 3,
          f.file("wrong.npy") + ": element [17]: wanted 0 to 3 for input 'labels', found -1");
}

TEST_CASE("a loss that is no number is told, and --check-nan names its origin") {
  const Fixture f;
  const Outcome o = f.run("--steps 9 --batch 4 --set lr=1e25" + f.data);
  CHECK(o.status == 0);
  CHECK(o.text.find("oclrun: warning: the loss of step ") == 0);
  CHECK(o.text.find("; --check-nan finds where a NaN is made\n") != o.text.npos);
  const Outcome checked = f.run("--steps 9 --batch 4 --check-nan --set lr=1e25" + f.data);
  CHECK(checked.status == 7);
  CHECK(checked.text.find("oclrun: error: step ") != checked.text.npos);
  CHECK(
      checked.text.find("node backward_node, kernel 'backward', launch 0 of entry point 'train_step', made a NaN: buffer '") !=
      checked.text.npos);
  CHECK(f.run("--steps 9 --batch 4 --check-nan" + f.data).status == 0);
  auto x = f.x;
  x[4] = std::nanf("");
  write_npy(f.file("x.npy"), OCLC_F32, {24, 2}, x);
  f.error("--steps 9 --batch 3 --no-shuffle --check-nan" + f.data, 7,
          "step 1: input 'x' holds a NaN at element 4 (1 of 6), before anything ran");
}

TEST_CASE("case 106: an interrupt ends the run after a step, with the state saved") {
  const Fixture f;
  std::thread killer;
  const std::string out = f.file("out.txt");
  const std::string command = kOclrun + f.plan + " --steps 100000000 --batch 4 --save-state " + f.file("state") + f.data +
                              " --log " + f.file("log.csv") + " > " + out + " 2>&1 & echo $!";
  const pid_t child = static_cast<pid_t>(std::stol(test::run("sh -c '" + command + "'").text));
  for (int i = 0; i < 600 && contents(f.file("log.csv")).size() < 200; ++i) ::usleep(50000);
  ::kill(child, SIGINT);
  for (int i = 0; i < 600 && ::kill(child, 0) == 0; ++i) ::usleep(20000);
  CHECK(::kill(child, 0) != 0);
  const std::string text = contents(out);
  CAPTURE(text);
  CHECK(text.find("train: steps=") != text.npos);
  CHECK(text.find("oclrun: interrupted after step ") != text.npos);
  CHECK(text.find(", state saved to " + f.file("state")) != text.npos);
  CHECK(f.run("--steps 1 --batch 4 --load-state " + f.file("state") + f.data).status == 0);
}

TEST_CASE("case 111: killed while it saves after every step, the state always loads") {
  const Fixture f;
  const std::string state = f.file("state");
  REQUIRE(f.run("--steps 1 --batch 4 --save-state " + state + f.data).status == 0);
  for (int round = 0; round < 5; ++round) {
    const Outcome o =
        test::run("timeout -s KILL 0." + std::to_string(30 + 7 * round) + " " + kOclrun + f.plan +
                  " --steps 1000000 --batch 4 --save-every 1 --save-state " + state + " --load-state " + state + f.data);
    CHECK(o.status != 0);
    const Outcome next = f.run("--steps 1 --batch 4 --json --load-state " + state + f.data);
    CAPTURE(next.text);
    REQUIRE(next.status == 0);
    CHECK(json::parse(next.text)["train"]["last_step"] >= 2);
  }
}

TEST_CASE("--json and --random") {
  const Fixture f;
  const Outcome o = f.run("--steps 3 --random --dim N=7 --json");
  REQUIRE(o.status == 0);
  const json d = json::parse(o.text);
  CHECK(d["entry"] == "train_step");
  CHECK(d["train"]["steps"] == 3);
  CHECK(d["train"]["interrupted"] == false);
  CHECK(d["train"]["loss"].get<double>() < d["train"]["first_loss"].get<double>());
}

// Protobuf by hand.
std::string varint(std::uint64_t v) {
  std::string out;
  for (; v >= 128; v >>= 7) out.push_back(static_cast<char>(v | 128));
  out.push_back(static_cast<char>(v));
  return out;
}
std::string bytes_field(unsigned number, const std::string& value) {
  return varint(number << 3 | 2) + varint(value.size()) + value;
}
std::string int_field(unsigned number, std::uint64_t value) { return varint(number << 3) + varint(value); }

std::string initializer(const std::string& name, const std::vector<std::uint64_t>& dims, const std::string& data,
                        std::uint64_t type = 1) {
  std::string t;
  for (const std::uint64_t d : dims) t += int_field(1, d);
  return bytes_field(5, t + int_field(2, type) + bytes_field(8, name) + data);
}

std::string model(const std::string& graph) {
  return int_field(1, 8) + bytes_field(2, "test") + bytes_field(7, bytes_field(2, "g") + graph) + bytes_field(99, "kept");
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
}

TEST_CASE("--state-to-onnx writes the model with the trained weights, all else as it was") {
  const Fixture f;
  const std::string other = initializer("other", {1}, bytes_field(9, floats({7})));
  const std::string tail = bytes_field(11, "input");
  f.folder.add("m.onnx", model(initializer("w", {2}, bytes_field(4, floats({5, 6}))) + other +
                               initializer("b", {}, bytes_field(9, floats({1}))) + tail));
  REQUIRE(f.run("--steps 60 --batch 8 --set lr=0.3 --save-state " + f.file("state") + f.data).status == 0);
  const Outcome o = f.run("--steps 1 --batch 8 --set lr=0 --load-state " + f.file("state") + f.data + " --model " +
                          f.file("m.onnx") + " --state-to-onnx " + f.file("t.onnx"));
  CHECK(o.status == 0);
  CHECK(o.text.find("oclrun: note: " + f.file("t.onnx") + ": 2 trained weights, 1 initializers as they were\n") == 0);
  const std::string text = contents(f.file("t.onnx"));
  const std::size_t at = text.find(bytes_field(8, "w"));
  REQUIRE(at != text.npos);
  float w[2] = {};
  std::memcpy(w, text.data() + at + 5, 8);
  CHECK(w[0] == doctest::Approx(2).epsilon(0.05));
  CHECK(w[1] == doctest::Approx(-1).epsilon(0.05));
  float b = 0;
  std::memcpy(&b, text.data() + text.find(bytes_field(8, "b")) + 5, 4);
  CHECK(text == model(initializer("w", {2}, bytes_field(9, floats({w[0], w[1]}))) + other +
                      initializer("b", {}, bytes_field(9, floats({b}))) + tail));

  const auto refused = [&](const std::string& bytes, const std::string& text, const std::string& to = "u.onnx") {
    f.folder.add("m.onnx", bytes);
    const Outcome r = f.run("--steps 1 --batch 8" + f.data + " --model " + f.file("m.onnx") + " --state-to-onnx " + f.file(to));
    CHECK(r.status == 3);
    CAPTURE(r.text);
    CHECK(r.text == "oclrun: error: " + text + "\n");
    CHECK(!std::filesystem::exists(f.file(to)));
  };
  const std::string m = f.file("m.onnx");
  refused("\x0a", m + ": not an ONNX model: damaged at a field");
  refused(int_field(1, 8), m + ": not an ONNX model: it has no graph");
  refused(model(other), m + ": none of its initializers is in the state; is it the model that the plan was compiled from?");
  refused(model(initializer("w", {3}, "")), m + ": initializer 'w': wanted float32 [2] as in the state, found float32 [3]");
  refused(model(initializer("w", {2}, "", 11)), m + ": initializer 'w': wanted float32 [2] as in the state, found float64 [2]");
  std::filesystem::create_directory(f.file("sub"));
  refused(model(initializer("w", {2}, "") + initializer("far", {2}, int_field(14, 1))),
          f.file("sub/u.onnx") + ": initializer 'far' was not trained and lies in a file beside " + m +
              ": write the trained model into the same folder",
          "sub/u.onnx");
}

}  // namespace train_test
