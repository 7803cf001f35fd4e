#include "compiler/kernels/parse_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/kernels/parse_kernel.h"
#include "compiler/kernels/schedule_lines.h"
#include "compiler/kernels/schedule_names.h"

namespace oclc {
namespace {

class ScheduleParser : private ScheduleLines {
 public:
  ScheduleParser(Scanner& in, const OpLookup& find_op) : ScheduleLines(in), find_op_(find_op) {}

  Schedule run() {
    while (!in_.at_end()) {
      line();
      in_.end_of_line();
    }
    return std::move(schedule_);
  }

 private:
  void line() {
    if (in_.take_word("schedule")) {
      schedule_.model = in_.text();
    } else if (in_.take_word("symbol")) {
      schedule_.symbols.push_back(symbol());
    } else if (in_.take_word("local")) {
      symbol();
    } else if (in_.take_word("state")) {
      state();
    } else if (in_.take_word("buffer")) {
      buffer();
    } else if (in_.take_word("kernel")) {
      schedule_.kernels.push_back(parse_kernel(in_, find_op_));
      kernels_[schedule_.kernels.back().name].push_back(static_cast<int>(schedule_.kernels.size()) - 1);
    } else if (in_.take_word("gemm")) {
      gemm();
    } else if (in_.take_word("entry")) {
      entry();
    } else {
      in_.fail("schedule, symbol, local, state, buffer, kernel, gemm or entry");
    }
  }

  // A buffer that is defined.
  int buffer_number() {
    const int number = this->number("a buffer's number");
    if (static_cast<std::size_t>(number) >= schedule_.buffers.size())
      in_.fail("a buffer defined before", std::to_string(number));
    return number;
  }

  void state() {
    ScheduledState s;
    s.variable.name = in_.text();
    in_.expect(':');
    s.variable.type = literals_.type();
    want("buffer");
    s.buffer = number("a buffer's number");
    schedule_.states.push_back(std::move(s));
  }

  void buffer() {
    if (number("the buffer's number") != static_cast<int>(schedule_.buffers.size()))
      in_.fail(fmt::format("buffer {}", schedule_.buffers.size()), "another number");
    Buffer b;
    const std::string kind = in_.word("a kind of buffer");
    const auto known = buffer_kind_named(kind);
    if (!known) in_.fail("arena, constant, input, output or state", quotes(kind));
    b.kind = *known;
    b.name = in_.text();
    in_.expect(':');
    b.dtype = dtype();
    in_.expect('[');
    b.elements = expression(in_.enclosed(']'));
    if (in_.take_word("replaces")) b.replaces = number("a buffer's number");
    if (in_.take('=')) b.constant = constant();
    schedule_.buffers.push_back(std::move(b));
  }

  // A type, and the values unless the line ends there.
  HostTensor constant() {
    const TensorType type = literals_.type();
    const char next = in_.peek();
    if (next != '\n' && next != '\r' && next != '\0' && next != '/') return literals_.payload(type);
    return literals_.zeros(type);
  }

  void gemm() {
    Gemm g;
    g.name = in_.word("the product's name");
    g.sources = sources();
    in_.expect('{');
    in_.end_of_line();
    const auto operand = [&](int& buffer, Expr& offset, Expr& ld, Expr& stride) {
      std::tie(buffer, offset) = place();
      want("ld");
      const std::string_view rest = in_.rest_of_line();
      const std::size_t at = rest.find(" stride "), end = rest.find(" transposed");
      if (at == std::string_view::npos) in_.fail("' stride '", quotes(rest));
      ld = expression(rest.substr(0, at));
      stride = expression(rest.substr(at + 8, end == std::string_view::npos ? end : end - at - 8));
      return end != std::string_view::npos;
    };
    const std::map<std::string, Expr*> numbers = {{"m", &g.m},         {"n", &g.n},         {"k", &g.k},
                                                  {"batch", &g.batch}, {"flops", &g.flops}, {"bytes", &g.bytes}};
    for (in_.lines(); !in_.take('}'); in_.lines()) {
      const std::string word = in_.word("a line of a product");
      if (word == "a") {
        g.trans_a = operand(g.a, g.offset_a, g.lda, g.stride_a);
      } else if (word == "b") {
        g.trans_b = operand(g.b, g.offset_b, g.ldb, g.stride_b);
      } else if (word == "c") {
        operand(g.c, g.offset_c, g.ldc, g.stride_c);
      } else {
        const auto found = numbers.find(word);
        if (found == numbers.end()) in_.fail("a, b, c, m, n, k, batch, flops or bytes", quotes(word));
        *found->second = expression_to_end();
      }
    }
    gemms_[g.name] = static_cast<int>(schedule_.gemms.size());
    schedule_.gemms.push_back(std::move(g));
  }

  void entry() {
    EntrySchedule e;
    e.name = in_.name("the entry's name");
    in_.expect('{');
    in_.end_of_line();
    for (in_.lines();; in_.lines()) {
      const bool input = in_.take_word("input");
      if (!input && !in_.take_word("output")) break;
      std::string name = in_.text();
      in_.expect(':');
      TensorType type = literals_.type();
      want("buffer");
      (input ? e.inputs : e.outputs).emplace_back(std::move(name), std::move(type));
      (input ? e.input_buffers : e.output_buffers).push_back(buffer_number());
      in_.end_of_line();
    }
    e.steps = steps();
    schedule_.entries.push_back(std::move(e));
  }

  // Up to the bracket that ends them, which is taken.
  std::vector<Step> steps() {
    std::vector<Step> all;
    for (in_.lines(); !in_.take('}'); in_.lines()) {
      all.push_back(step());
      in_.comment();
      in_.end_of_line();
    }
    return all;
  }

  Step step() {
    const bool beside = in_.take_word("beside");
    const std::string word = in_.word("a step");
    if (kernels_.count(word) != 0) return {launch(kernel_number(word), beside)};
    if (beside) in_.fail("a kernel beside the one before", quotes(word));
    if (word == "library") return {GemmStep{product()}};
    if (word == "read") return {reading()};
    if (word == "host") return {host()};
    if (word == "loop") return {loop()};
    if (word == "loop_kernel") return {LoopKernelStep{body()}};
    if (word == "attention") return {AttentionStep{body()}};
    if (word == "ragged") return {RaggedStep{body()}};
    if (word == "megakernel") return {MegakernelStep{body()}};
    if (word == "parallel_loops") {
      in_.expect('<');
      const Expr trip = expression(before_body());
      return {ParallelLoopsStep{trip, steps()}};
    }
    if (word == "work_group") {
      std::string counter = in_.word("a counter");
      in_.expect('<');
      const Expr trip = expression(before_body());
      return {WorkGroupStep{trip, std::move(counter), steps()}};
    }
    in_.fail("a kernel defined before, or a form of steps", quotes(word));
  }

  // Of the kernel of that name; its number follows where there are several.
  int kernel_number(const std::string& name) {
    const auto known = kernels_.find(name);
    if (known == kernels_.end()) in_.fail("a kernel defined before", quotes(name));
    const std::vector<int>& all = known->second;
    if (!in_.take('#')) {
      if (all.size() != 1) in_.fail(fmt::format("'#' and the number of one of {} kernels {}", all.size(), name));
      return all[0];
    }
    const int number = this->number("a kernel's number");
    if (std::find(all.begin(), all.end(), number) == all.end())
      in_.fail("the number of a kernel " + name, std::to_string(number));
    return number;
  }

  KernelStep launch(int kernel, bool beside) {
    KernelStep made{kernel, beside};
    if (!in_.take_word("prefetches")) return made;
    const std::string name = in_.word("a kernel's name");
    const int other = kernel_number(name);
    for (const char* word : {"from", "byte"}) want(word);
    made.prefetch = {other, literals_.integer()};
    return made;
  }

  int product() {
    const std::string name = in_.word("the product's name");
    const auto known = gemms_.find(name);
    if (known == gemms_.end()) in_.fail("a gemm defined before", quotes(name));
    return known->second;
  }

  std::vector<Expr> shape() {
    in_.expect('[');
    std::vector<Expr> all = literals_.expressions(in_.enclosed(']'));
    for (const Expr& e : all) check_symbols(e);
    return all;
  }

  ReadingStep reading() {
    Reading r;
    r.dims = shape();
    in_.expect('<');
    in_.expect('=');
    r.upper = shape();
    want("from");
    std::tie(r.buffer, r.offset) = place();
    r.sources = sources();
    if (r.upper.size() != r.dims.size())
      in_.fail(fmt::format("{} largest values", r.dims.size()), std::to_string(r.upper.size()));
    schedule_.readings.push_back(std::move(r));
    return {static_cast<int>(schedule_.readings.size()) - 1};
  }

  HostStep host() {
    HostCall call;
    call.op = in_.word("an operator's name");
    in_.expect('(');
    while (!in_.take(')')) {
      if (!call.inputs.empty() || !call.outputs.empty()) in_.expect(',');
      const bool written = in_.take_word("write");
      const auto [buffer, offset] = place();
      (written ? call.outputs : call.inputs).push_back({buffer, offset, shape()});
    }
    if (in_.take_word("integers")) {
      in_.expect('[');
      do call.integers.push_back(literals_.integer());
      while (in_.take(','));
      in_.expect(']');
    }
    if (in_.take_word("texts")) {
      in_.expect('[');
      call.texts = quoted_texts();
      in_.expect(']');
    }
    call.sources = sources();
    schedule_.hosts.push_back(std::move(call));
    return {static_cast<int>(schedule_.hosts.size()) - 1};
  }

  // The rest of the line up to the bracket at its end, which begins a body.
  std::string_view before_body() {
    std::string_view rest = in_.rest_of_line();
    while (!rest.empty() && (rest.back() == ' ' || rest.back() == '\r')) rest.remove_suffix(1);
    if (!rest.ends_with(" {")) in_.fail("' {' at the end of the line", quotes(rest));
    rest.remove_suffix(2);
    return rest;
  }

  std::vector<Step> body() {
    in_.expect('{');
    in_.end_of_line();
    return steps();
  }

  // t < trip while condition in 4 slots slot {
  LoopStep loop() {
    LoopStep made;
    made.counter = in_.word("a counter");
    in_.expect('<');
    std::string_view rest = before_body();
    if (const std::size_t at = rest.rfind(" slots "), in = rest.rfind(" in "); at != std::string_view::npos && in < at) {
      made.slot = rest.substr(at + 7);
      made.slots = expression(rest.substr(in + 4, at - in - 4)).constant().value_or(0);
      rest = rest.substr(0, in);
    }
    if (const std::size_t at = rest.rfind(" while "); at != std::string_view::npos) {
      made.condition = rest.substr(at + 7);
      rest = rest.substr(0, at);
    }
    made.trip = expression(rest);
    made.body = steps();
    return made;
  }

  const OpLookup& find_op_;
  Schedule schedule_;
  std::map<std::string, std::vector<int>> kernels_;  // by name
  std::map<std::string, int> gemms_;                 // by name
};

}  // namespace

Schedule parse_schedule(std::string_view text, const OpLookup& find_op) {
  Scanner in(text);
  return ScheduleParser(in, find_op).run();
}

}  // namespace oclc
