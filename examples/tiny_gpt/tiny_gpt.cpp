// Trains a character-level transformer on a text and lets it write.
//
//   tiny_gpt TEXT [--until LOSS] [--steps N] [--batch N] [--rate LR] [--prompt TEXT] [--length N] [--temperature T] [--seed S]
//                 [--save FILE] [--load FILE] [--device SEL]
//
// AdamW until the loss on held-out stretches of TEXT is below LOSS nats a character, N steps at most; then --length characters
// that continue the prompt. --load starts from a checkpoint of --save (--steps 0: only writes). Ends with 1 if the loss stays
// above.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/error.h"
#include "compiler/training/training.h"
#include "examples/digits/waiting.h"
#include "examples/number.h"
#include "examples/tiny_gpt/gpt.h"
#include "examples/tiny_gpt/text.h"
#include "frontends/cpp/typed/plan.h"
#include "oclc/train.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLook = 100;  // steps from one look at the held-out text to the next

struct Arguments {
  std::string text, until = "1.5", steps = "1500", batch = "32", rate = "0.003", prompt = "Alice ", length = "600",
                    temperature = "0.7", seed = "1", save, load, device;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Writer {
 public:
  Writer(const Arguments& a)
      : text_(a.text, static_cast<std::size_t>(tiny_gpt::Size{}.context)), context_(a.device), plan_(compile(a)) {
    session_ = std::make_unique<oclc::rt::Session>(plan_, context_);
    if (!a.load.empty()) session_->load_state(a.load);
  }

  // The held-out loss at the end.
  double train(const Arguments& a) {
    const std::uint64_t steps = examples::number<std::uint64_t>("--steps", a.steps);
    const std::int64_t batch = examples::number<std::int64_t>("--batch", a.batch, 1);
    const double peak = examples::number<double>("--rate", a.rate), until = examples::number<double>("--until", a.until);
    auto trainer = std::make_unique<oclc::rt::Trainer>(*session_, plan_.entry("train_step"));
    const Clock::time_point start = Clock::now();
    std::optional<examples::Waiting> waiting("compiling kernels, which drivers keep, and learning");
    double held_out = std::numeric_limits<double>::infinity();
    const std::uint64_t first = trainer->next_step() - 1;
    std::uint64_t step = first;
    double mean = 0, count = 0;
    const auto told = [&](bool wait) {
      for (const oclc_step_result& result : trainer->results(wait)) mean += result.loss, ++count;
    };
    while (step < steps && !(held_out < until)) {
      auto* tokens = static_cast<std::int64_t*>(trainer->memory("tokens", OCLC_I64, {batch, size_.context}));
      auto* labels = static_cast<std::int64_t*>(trainer->memory("labels", OCLC_I64, {batch, size_.context}));
      for (std::int64_t i = 0; i < batch; ++i)
        text_.training(step * static_cast<std::uint64_t>(batch) + static_cast<std::uint64_t>(i), tokens + i * size_.context,
                       labels + i * size_.context);
      trainer->set("lr", learning_rate(peak, step, steps));
      trainer->step();
      ++step;
      told(false);
      if (step % kLook != 0 && step != steps) continue;
      told(true);
      held_out = held_out_loss();
      waiting.reset();
      const double time = seconds_since(start), rate = static_cast<double>(step - first) / time;
      std::printf("step %5llu   loss %.3f   held out %.3f   %6.0f characters/s   %5.1f s\n",
                  static_cast<unsigned long long>(step), mean / count, held_out,
                  rate * static_cast<double>(batch * size_.context), time);
      std::fflush(stdout);
      mean = count = 0;
    }
    if (!a.save.empty()) session_->save_state(a.save);
    return step == first ? held_out_loss() : held_out;
  }

  // Draws each character from the probabilities ^ (1 / temperature); the last `context` characters are what it sees.
  std::string write(const Arguments& a) {
    const double temperature = examples::number<double>("--temperature", a.temperature, 0);
    std::string written = a.prompt;
    for (const char c : written) {
      if (text_.symbols().find(c) == std::string::npos)
        throw std::runtime_error(std::string("--prompt: the text has no '") + c + "'");
    }
    if (written.empty()) throw std::runtime_error("--prompt: wanted one character or more");
    const std::uint32_t entry = plan_.entry("predict");
    const std::size_t symbols = text_.symbols().size(), context = static_cast<std::size_t>(size_.context);
    std::vector<std::int64_t> tokens(context);
    std::vector<float> logits(context * symbols);
    session_->set_input(entry, "tokens", tokens.data(), {1, size_.context});
    session_->set_output(entry, "logits", logits.data(), {1, size_.context, static_cast<std::int64_t>(symbols)});
    const auto length = examples::number<std::size_t>("--length", a.length);
    const auto seed = examples::number<std::uint64_t>("--seed", a.seed);
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t seen = std::min(written.size(), context);
      for (std::size_t at = 0; at < seen; ++at) tokens[at] = text_.token(written[written.size() - seen + at]);
      session_->run(entry);  // positions after `seen` do not matter: no position looks ahead
      written += text_.symbols()[draw(&logits[(seen - 1) * symbols], symbols, temperature, seed, i)];
    }
    return written;
  }

  void describe() const {
    std::printf("%zu characters, %zu of them distinct; %lld blocks of width %lld, %.2f million parameters; on %s\n",
                text_.size(), text_.symbols().size(), static_cast<long long>(size_.blocks), static_cast<long long>(size_.width),
                static_cast<double>(parameters_) * 1e-6, context_.device().name);
  }

 private:
  oclc::rt::Plan compile(const Arguments& a) {
    size_.symbols = static_cast<std::int64_t>(text_.symbols().size());
    oclc::nn::Network net("tiny_gpt", oclc::nn::initial_parameters(examples::number<std::uint64_t>("--seed", a.seed)),
                          oclc::nn::Use::training);
    const oclc::nn::Tensor tokens = net.input("tokens", oclc::DType::i64, {net.symbol("N"), size_.context});
    net.output("logits", tiny_gpt::gpt(net, tokens, size_));
    const std::shared_ptr<oclc::Module> module = net.finish();
    for (const oclc::StateVariable& state : module->states) parameters_ += state.initial.elements();
    oclc::TrainingOptions training;
    training.loss = oclc::parse_loss("cross_entropy");
    training.optimizer = oclc::parse_optimizer("adamw,weight_decay=0.1,beta2=0.99,clip_norm=1");
    build_training(*module, training);
    return plan_for(context_, module, oclc::CompileOptions());
  }

  // A warm-up, then down to a tenth along a cosine.
  static double learning_rate(double peak, std::uint64_t step, std::uint64_t steps) {
    const double at = static_cast<double>(step) / static_cast<double>(steps);
    const double warm = std::min(1.0, static_cast<double>(step + 1) / 50);
    return peak * warm * (0.55 + 0.45 * std::cos(std::numbers::pi * at));
  }

  // Nats a character over all held-out windows.
  double held_out_loss() {
    const std::uint32_t entry = plan_.entry("eval_step");
    const std::size_t context = static_cast<std::size_t>(size_.context), windows = text_.held_out_windows();
    std::vector<std::int64_t> tokens(windows * context), labels(windows * context);
    for (std::size_t i = 0; i < windows; ++i) text_.held_out(i, &tokens[i * context], &labels[i * context]);
    float loss = 0;
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(windows), size_.context};
    session_->set_input(entry, "tokens", tokens.data(), shape);
    session_->set_input(entry, "labels", labels.data(), shape);
    session_->set_output(entry, "loss", &loss, {});
    session_->run(entry);
    return static_cast<double>(loss);
  }

  static std::size_t draw(const float* logits, std::size_t count, double temperature, std::uint64_t seed, std::uint64_t index) {
    const double largest = *std::max_element(logits, logits + count);
    std::vector<double> up_to(count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) up_to[i] = sum += std::exp((logits[i] - largest) / std::max(temperature, 1e-3));
    const double at = static_cast<double>(tiny_gpt::random_bits(1000 + seed, index) >> 11) * 0x1p-53 * sum;
    return static_cast<std::size_t>(std::upper_bound(up_to.begin(), up_to.end() - 1, at) - up_to.begin());
  }

  tiny_gpt::Size size_;
  std::int64_t parameters_ = 0;
  tiny_gpt::Text text_;
  oclc::rt::Context context_;
  oclc::rt::Plan plan_;
  std::unique_ptr<oclc::rt::Session> session_;
};

int run(const Arguments& a) {
  const Clock::time_point start = Clock::now();
  Writer writer(a);
  writer.describe();
  const double loss = writer.train(a);
  std::printf("held-out loss %.3f nats a character after %.1f s\n\n", loss, seconds_since(start));
  const Clock::time_point before = Clock::now();
  const std::string written = writer.write(a);
  std::printf("%s\n\n%zu characters in %.2f s\n", written.c_str(), written.size() - a.prompt.size(), seconds_since(before));
  return loss < examples::number<double>("--until", a.until) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  const std::map<std::string_view, std::string*> options{{"--until", &a.until},
                                                         {"--steps", &a.steps},
                                                         {"--batch", &a.batch},
                                                         {"--rate", &a.rate},
                                                         {"--prompt", &a.prompt},
                                                         {"--length", &a.length},
                                                         {"--temperature", &a.temperature},
                                                         {"--seed", &a.seed},
                                                         {"--save", &a.save},
                                                         {"--load", &a.load},
                                                         {"--device", &a.device}};
  bool good = argc >= 2 && argc % 2 == 0;
  for (int i = 2; i + 1 < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end())
      good = false;
    else
      *option->second = argv[i + 1];
  }
  if (!good) {
    std::fputs(
        "usage: tiny_gpt TEXT [--until LOSS] [--steps N] [--batch N] [--rate LR] [--prompt TEXT] [--length N] [--temperature "
        "T]\n"
        "                [--seed S] [--save FILE] [--load FILE] [--device SEL]\n",
        stderr);
    return 2;
  }
  a.text = argv[1];
  try {
    return run(a);
  } catch (const oclc::CompileError& error) {
    std::fprintf(stderr, "tiny_gpt: error: %s\n", error.what());
    return static_cast<int>(error.parts().exit_code);
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "tiny_gpt: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
    return 5;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "tiny_gpt: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tiny_gpt: error: %s\n", error.what());
    return 6;
  }
}
