// Plans made to cost their reader much: each is refused, or read, in time in proportion to its file.
#include <doctest/doctest.h>

#include <chrono>

#include "runtime/package/memory.h"
#include "runtime/package/text/unicode.h"
#include "runtime/package/verify/verify.h"
#include "runtime/package/verify/verify_source.h"
#include "tests/package/verify_error.h"
#include "tests/runtime/plan_builder.h"
#include "tests/sanitized.h"

using namespace oclc;
using namespace oclc::test;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::unique_ptr<fb::SymbolT> read_symbol(const std::string& name, const E& upper, bool open = false) {
  auto s = symbol(name, 0, 1 << 24, true);
  s->upper = upper.ptr();
  s->open = open;
  return s;
}

// One launch of `k` that reads arena buffer 1 and writes output 0.
void add_launch(fb::PlanT& plan) {
  plan.programs.push_back(program("p", "kernel void k(global float* a, long a0, global float* y, long y0) { y[y0] = 1; }"));
  auto e = entry("predict");
  e->outputs.push_back(binding("y", 0, {1}));
  e->steps.push_back(launch("k", 0, {1}, {1}, reads(1), writes(0)));
  plan.entries.push_back(std::move(e));
}

// Symbols of which each is at most `bound` of the one before; the size of the scratch is the last one's.
fb::PlanT chained_symbols(int n, const std::function<E(const E&)>& bound) {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(read_symbol("s0", 1));
  for (int i = 1; i < n; ++i) plan.symbols.push_back(read_symbol("s" + std::to_string(i), bound(E::symbol(i - 1))));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
  plan.buffers.push_back(arena_buffer("a", E::symbol(n - 1), 0, 0, 0));
  add_launch(plan);
  return plan;
}

fb::PlanT scratch_plan(int buffers, const std::function<int(int)>& alias) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
  for (int i = 0; i < buffers; ++i) plan.buffers.push_back(arena_buffer("", 128 + i * 37 % 1001 * 128, 0, 0, 0, alias(i)));
  add_launch(plan);
  return plan;
}

package::EntryMemory memory_of(const std::vector<std::byte>& bytes) {
  return package::plan_memory(package::verify_metadata(bytes, 0), 0, {});
}

// A launch whose `nodes` refer `count` times to one text.
std::vector<std::byte> shared_nodes(int count, std::size_t length) {
  flatbuffers::FlatBufferBuilder b;
  const auto text = b.CreateString(std::string(length, 'n'));
  const auto nodes =
      b.CreateVector(std::vector<flatbuffers::Offset<flatbuffers::String>>(static_cast<std::size_t>(count), text));
  const auto expr = [&](std::vector<std::int64_t> code) { return fb::CreateExpr(b, b.CreateVector(code)); };
  const std::vector<flatbuffers::Offset<fb::Buffer>> buffers = {
      fb::CreateBuffer(b, b.CreateString("y"), fb::BufferKind::output, fb::DType::f32, expr({0, 4}))};
  const std::vector<flatbuffers::Offset<fb::Program>> programs = {
      fb::CreateProgram(b, b.CreateString("p"), b.CreateString("kernel void k(global float* y, long y0) {}"))};
  const std::vector<flatbuffers::Offset<fb::Arg>> args = {fb::CreateArg(b, fb::ArgKind::buffer, 0, expr({0, 0}), true)};
  const std::vector<flatbuffers::Offset<fb::Expr>> one = {expr({0, 1})};
  const auto made = fb::CreateLaunch(b, b.CreateString("k"), 0, b.CreateVector(args), b.CreateVector(one),
                                     b.CreateVector(std::vector<std::uint32_t>{1}), 0, nodes);
  const std::vector<flatbuffers::Offset<fb::Step>> steps = {fb::CreateStep(b, fb::StepBody::Launch, made.Union())};
  const std::vector<flatbuffers::Offset<fb::Binding>> outputs = {
      fb::CreateBinding(b, b.CreateString("y"), fb::DType::f32, b.CreateVector(one), 0)};
  const std::vector<flatbuffers::Offset<fb::Entry>> entries = {
      fb::CreateEntry(b, b.CreateString("predict"), 0, b.CreateVector(outputs), b.CreateVector(steps))};
  const auto model = b.CreateString("test");
  const auto all_buffers = b.CreateVector(buffers);
  const auto all_programs = b.CreateVector(programs);
  const auto all_entries = b.CreateVector(entries);
  fb::PlanBuilder plan(b);
  plan.add_model(model);
  plan.add_buffers(all_buffers);
  plan.add_programs(all_programs);
  plan.add_entries(all_entries);
  b.Finish(plan.Finish());
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {begin, begin + b.GetSize()};
}

struct Verdict {
  std::string error;
  double seconds;
};

Verdict verify(const std::vector<std::byte>& bytes) {
  const auto begin = Clock::now();
  std::string error;
  try {
    package::verify_metadata(bytes, 16);
  } catch (const package::Error& e) {
    error = e.what();
  }
  return {error, seconds_since(begin)};
}

// Legal, and told so within a second.
void check_quick(const fb::PlanT& plan) {
  const Verdict verdict = verify(metadata(plan));
  CHECK(verdict.error.empty());
  CHECK(verdict.seconds < 1);
}

}  // namespace

TEST_CASE("P9: many tables that share one list of texts are refused before it is read for each") {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString("n");
  const auto list = builder.CreateVector(std::vector<flatbuffers::Offset<flatbuffers::String>>(50'000, text));
  std::vector<flatbuffers::Offset<fb::Step>> steps;
  for (int i = 0; i < 20'000; ++i)
    steps.push_back(
        fb::CreateStep(builder, fb::StepBody::Launch, fb::CreateLaunch(builder, text, 0, 0, 0, 0, 0, list).Union()));
  const auto entry = fb::CreateEntry(builder, text, 0, 0, builder.CreateVector(steps));
  const auto entries = builder.CreateVector(std::vector{entry});
  fb::PlanBuilder plan(builder);
  plan.add_entries(entries);
  fb::FinishPlanBuffer(builder, plan.Finish());
  const auto begin = Clock::now();
  CHECK_THROWS_WITH_AS(package::verify_metadata(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())), 0),
                       "the metadata's structure is damaged", package::Error);
  CHECK(seconds_since(begin) < 1);
}

TEST_CASE("P1: symbols that each use the one before twice are checked once each") {
  check_quick(chained_symbols(60, [](const E& s) { return s + s; }));
  check_quick(chained_symbols(20000, [](const E& s) { return s.then(s, ExprOp::max).then(s, ExprOp::min); }));
}

TEST_CASE("P1: whether a size was read is known through symbols that depend on it") {
  const auto plan = [](bool reads_it) {
    fb::PlanT made = new_plan();
    made.symbols.push_back(read_symbol("found", 100, true));
    made.symbols.push_back(read_symbol("part", E::symbol(0) + E::symbol(0)));
    made.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
    made.buffers.push_back(arena_buffer("a", E::symbol(1), 0, 0, 1));
    made.buffers.push_back(arena_buffer("count", 8, 0, 0, 1));
    made.buffers.back()->dtype = fb::DType::i64;
    add_launch(made);
    fb::ReadT read;
    read.from = reads(2);
    read.dims = {0};
    auto step = std::make_unique<fb::StepT>();
    step->body.Set(std::move(read));
    auto& steps = made.entries[0]->steps;
    if (reads_it) steps.insert(steps.begin(), std::move(step));
    steps.insert(steps.begin(), launch("k", 0, {1}, {1}, reads(2), writes(0)));
    return made;
  };
  CHECK(verify_error(plan(true)).empty());
  CHECK(verify_error(plan(false)) ==
        "entry point 'predict' step 1 'k' argument 0: buffer 1 'a' is used before its size is read");
}

TEST_CASE("P2: long chains of symbols need no stack, and too many are refused") {
  check_quick(chained_symbols(65536, [](const E& s) { return s; }));
  CHECK(verify_error(chained_symbols(65537, [](const E& s) { return s; })) == "symbols: 65537, allowed are 65536");
}

TEST_CASE("what a step reads in one entry point is not known in the next") {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(read_symbol("found", 100));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 8, fb::DType::i64));
  plan.programs.push_back(program("p", "kernel void k(global long* y, long y0) {}"));
  for (const char* name : {"first", "second"}) {
    auto e = entry(name);
    e->outputs.push_back(binding("y", 0, {1}, fb::DType::i64));
    plan.entries.push_back(std::move(e));
  }
  fb::ReadT read;
  read.from = reads(0);
  read.dims = {0};
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(read));
  plan.entries[0]->steps.push_back(std::move(step));
  plan.entries[0]->steps.push_back(launch("k", 0, {E::symbol(0)}, {1}, writes(0)));
  CHECK(verify_error(plan).empty());
  plan.entries[1]->steps.push_back(launch("k", 0, {E::symbol(0)}, {1}, writes(0)));
  CHECK(verify_error(plan) == "entry point 'second' step 0 'k' global size 0: uses the symbol 'found' before it is read");
}

TEST_CASE("P3: names and expressions have bounded lengths") {
  fb::PlanT plan = vector_plan();
  plan.symbols[0]->name = std::string(8192, 'N');
  CHECK(verify_error(plan).empty());
  plan.symbols[0]->name += 'N';
  CHECK(verify_error(plan) == "symbol 0: its name is longer than 8192 bytes");
  plan = vector_plan();
  std::vector<std::int64_t>& code = plan.entries[0]->outputs[0]->shape[0]->code;
  while (code.size() + 3 <= 16384) code.insert(code.end(), {1, 0, 6});
  CHECK(verify_error(plan).empty());
  code.insert(code.end(), {1, 0, 6});
  CHECK(verify_error(plan) == "entry point 'predict' output 0 dimension 0: its expression has 16385 words, allowed are 16384");
}

TEST_CASE("P9: texts and expressions that many places share are refused when they are many times the file") {
  CHECK(verify(shared_nodes(4, 100)).error.empty());
  const auto bytes = shared_nodes(20000, 8000);
  const Verdict verdict = verify(bytes);
  CHECK(verdict.error == "metadata: its texts and expressions have over 4 times its " + std::to_string(bytes.size()) +
                             " bytes: too many places refer to one");
  CHECK(verdict.seconds < 1);
}

TEST_CASE("P9: very many buffers, and chains of aliases, are laid out without a search") {
  const auto chained = metadata(scratch_plan(50000, [](int i) { return i == 0 ? -1 : i; }));
  const auto apart = metadata(scratch_plan(100000, [](int) { return -1; }));
  const auto begin = Clock::now();
  CHECK(memory_of(chained).arena_bytes == 1001 * 128);
  const package::EntryMemory memory = memory_of(apart);
  CHECK(memory.arena_bytes == memory.live_bytes);
  CHECK(seconds_since(begin) < (kSanitized ? 10 : 2));
}

TEST_CASE("P9: parts of a launch are compared with its arguments once each") {
  fb::PlanT plan = vector_plan();
  auto& l = *plan.entries[0]->steps[0]->body.AsLaunch();
  for (int i = 0; i < 1000; ++i) l.args.push_back(reads(0));
  for (int i = 0; i < 2000; ++i) {
    auto part = std::make_unique<fb::PartT>();
    for (int k = 0; k < 30; ++k) part->args.push_back(reads(i % 2));
    l.parts.push_back(std::move(part));
  }
  for (auto& b : plan.buffers)
    if (b->kind == fb::BufferKind::arena) b->last = 2001;
  check_quick(plan);
  l.parts[7]->args[3] = reads(5);
  CHECK(verify_error(plan) ==
        "entry point 'predict' step 0 'add' part 7 argument 3: buffer 5 'y' is not one that the launch uses so");
}

TEST_CASE("P4: pieces lie within their buffer") {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
  plan.buffers.push_back(arena_buffer("a", 200, 0, 0, 0));
  for (const std::int64_t offset : {0, 128}) plan.buffers[1]->pieces.push_back(fb::Piece(offset, 0));
  add_launch(plan);
  CHECK(verify_error(plan).empty());
  plan.buffers[1]->pieces.push_back(fb::Piece(1 << 20, 0));
  CHECK(verify_error(plan) == "buffer 1 'a': a piece at 1048576, beyond its 200 bytes");
}

TEST_CASE("P5: what divides by 0 or less has no value, as the bounds of sizes reckon") {
  using package::evaluate;
  for (const ExprOp op : {ExprOp::floor_div, ExprOp::mod}) {
    for (const std::int64_t divisor : {0, -1, -3}) {
      const E e = E(-2000).then(divisor, op);
      CHECK(!evaluate(e.code, {}));
      CHECK(!package::evaluate_range(e.code, {}));
    }
    const E by_symbol = E(-2000).then(E::symbol(0), op);
    const package::Range open[] = {{-3, 2}}, closed[] = {{-3, 0}};
    const auto range = package::evaluate_range(by_symbol.code, open);
    REQUIRE(range.has_value());
    for (const std::int64_t value : {1, 2}) {
      const std::int64_t symbols[] = {value};
      const auto found = evaluate(by_symbol.code, symbols);
      REQUIRE(found.has_value());
      CHECK(range->low <= *found);
      CHECK(*found <= range->high);
    }
    CHECK(!package::evaluate_range(by_symbol.code, closed));
  }
}

TEST_CASE("P10: program text reads no files and ends no compiler") {
  using package::problem_of_source;
  for (const char* text :
       {"#include \"/etc/passwd\"\n", "int a;\n  #  include </etc/passwd>\n", "/* a */ # /* b */ include \"x\"\n",
        "#inc\\\nlude \"x\"\n", "#\\\n include \"x\"\n", "# \\ \r\ninclude \"x\"\n", "%:include \"x\"\n", "?\?=include \"x\"\n",
        "#inc?\?/\nlude \"x\"\n", "# /* \n */ include \"x\"\n"}) {
    INFO(text);
    CHECK(problem_of_source(text) == "its source reads a file: #include");
  }
  CHECK(problem_of_source("#include_next <x>\n") == "its source reads a file: #include_next");
  CHECK(problem_of_source("#import <x>\n") == "its source reads a file: #import");
  CHECK(problem_of_source("#embed <x>\n") == "its source reads a file: #embed");
  CHECK(problem_of_source("void f() { __asm__(\".incbin \\\"x\\\"\"); }") == "its source reads a file: .incbin");
  CHECK(problem_of_source("#pragma clang __debug crash\n") == "its source has the unknown pragma 'clang __debug'");
  CHECK(problem_of_source("#pragma GCC dependency \"x\"\n") == "its source has the unknown pragma 'GCC'");
  CHECK(problem_of_source("_Pragma(\"clang __debug crash\")") == "its source has the operator _Pragma");
  for (const char* text : {"#define include 1\n#ifdef include\n#endif\n", "#define TEXT(x) #x\nTEXT(include)\n",
                           "#pragma unroll\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma clang fp contract(off)\n",
                           "int include, a = 5 % 3; // include\n", "#", "# ", "#\\", "%:"}) {
    INFO(text);
    CHECK(problem_of_source(text).empty());
  }
  using package::problem_of_options;
  CHECK(problem_of_options("").empty());
  CHECK(problem_of_options(" -DX=1  -cl-std=CL1.2 -cl-fast-relaxed-math").empty());
  CHECK(problem_of_options("-DX -include /etc/passwd") == "its build options contain '-include', allowed are -D and -cl-");
  CHECK(problem_of_options("-I/etc") == "its build options contain '-I/etc', allowed are -D and -cl-");
  CHECK(problem_of_options("-D X") == "its build options contain '-D', allowed are -D and -cl-");
  fb::PlanT plan = vector_plan();
  plan.programs[0]->source = "#include \"/etc/passwd\"\n" + plan.programs[0]->source;
  CHECK(verify_error(plan) == "program 0: its source reads a file: #include");
}

TEST_CASE("R2: what could steer a terminal is shown as text") {
  using package::shown;
  CHECK(shown("plain \xc3\xa4 \\ \xf0\x9f\x98\x80") == "plain \xc3\xa4 \\ \xf0\x9f\x98\x80");
  CHECK(shown("\x1b[31m\a\r\x7f") == "\\x1b[31m\\x07\\x0d\\x7f");
  CHECK(shown(std::string("\0x", 2)) == "\\x00x");
  CHECK(shown("a\nb\tc") == "a\\x0ab\\x09c");
  CHECK(shown("a\nb\tc\r", true) == "a\nb\tc\\x0d");
  CHECK(shown("\xc2\x9b") == "\\xc2\\x9b");           // CSI as one code point
  CHECK(shown("\xe2\x80\xae") == "\\xe2\\x80\\xae");  // right to left from here on
  CHECK(shown("\xff\xfe\x80") == "\\xff\\xfe\\x80");
  CHECK(shown("\xef\xbf\xbd") == "\xef\xbf\xbd");
}
