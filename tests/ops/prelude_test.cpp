// The operators' kernel text and the functions of templates/functions/prelude.cl, run on a device and compared with the
// references.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/text/template_table.h"
#include "tests/ops/opencl_host.h"
#include "tests/ops/run_op.h"

using namespace oclc;

namespace {

const double kWrong = std::numeric_limits<double>::infinity();

std::string prelude() {
  for (const TemplateText& row : template_texts()) {
    if (row.name == "prelude") return std::string(row.text);
  }
  throw InternalError("templates/functions/prelude.cl is not embedded");
}

std::string vector_type(std::string_view scalar, int width) {
  return width == 1 ? std::string(scalar) : fmt::format("{}{}", scalar, width);
}

// Distance of y from the reference in units of the reference's last place as a float.
double error_in_ulp(float y, double wanted) {
  if (std::isnan(wanted)) return std::isnan(y) ? 0 : kWrong;
  const auto rounded = static_cast<float>(wanted);
  if (std::isinf(rounded) || std::isinf(y)) return y == rounded ? 0 : kWrong;
  const float magnitude = std::fabs(rounded);
  const double unit =
      std::max(static_cast<double>(std::nextafter(magnitude, INFINITY)) - static_cast<double>(magnitude), 0x1p-149);
  return std::fabs(static_cast<double>(y) - wanted) / unit;
}

// All bit patterns of a float in steps of `step`: both signs, subnormals, infinities, NaN.
HostTensor all_floats(std::uint32_t step) {
  const auto count = static_cast<std::int64_t>((std::uint64_t{1} << 32) / step / 16 * 16);
  HostTensor x(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(i) * step;
    std::memcpy(x.mutable_data() + i * 4, &bits, 4);
  }
  return x;
}

HostTensor apply(const OpenClHost& host, const std::string& text, const HostTensor& x, int width) {
  const std::string type = vector_type("float", width);
  const std::string source =
      prelude() + fmt::format(R"(
__kernel void run(__global const float* x, __global float* y) {{
  for (size_t i = get_group_id(0) * 4096; i < get_group_id(0) * 4096 + 4096 && i < {0}; i += {1}) {{
    const {2} a = {3};
    const {2} r = {4};
    {5};
  }}
}}
)",
                              x.elements(), width, type, width == 1 ? "x[i]" : fmt::format("vload{}(0, x + i)", width), text,
                              width == 1 ? "y[i] = r" : fmt::format("vstore{}(r, 0, y + i)", width));
  return host.run(source, {x}, HostTensor(DType::f32, x.shape()), static_cast<std::size_t>((x.elements() + 4095) / 4096));
}

struct Function {
  std::string text;
  double (*reference)(double);
};

}  // namespace

TEST_CASE("the prelude's float functions are within 2.5 ulp for all kinds of floats") {
  const OpenClHost host;
  const HostTensor x = all_floats(4001);
  const std::vector<Function> functions = {
      {"oclc_erf(a)", [](double a) { return std::erf(a); }},
      {"oclc_tanh(a)", [](double a) { return std::tanh(a); }},
      {"oclc_exp(a)", [](double a) { return std::exp(a); }},
      {"oclc_sigmoid(a)", [](double a) { return a < 0 ? std::exp(a) / (1 + std::exp(a)) : 1 / (1 + std::exp(-a)); }},
      {"oclc_softplus(a)", [](double a) { return std::isnan(a) ? a : std::fmax(a, 0) + std::log1p(std::exp(-std::fabs(a))); }},
      {"oclc_relu(a)", [](double a) { return a < 0 ? 0 : a; }},
      {"oclc_sign(a)", [](double a) { return a > 0 ? 1 : (a < 0 ? -1 : a); }},
  };
  for (const Function& function : functions) {
    std::vector<double> wanted;
    for (std::int64_t i = 0; i < x.elements(); ++i) wanted.push_back(function.reference(x.at(i)));
    for (const int width : {1, 4, 8, 16}) {
      const HostTensor y = apply(host, function.text, x, width);
      double worst = 0, at = 0;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const double error = error_in_ulp(static_cast<float>(y.at(i)), wanted[static_cast<std::size_t>(i)]);
        if (error > worst) worst = error, at = x.at(i);
      }
      INFO(function.text << " on " << width << " lanes: " << worst << " ulp at " << at);
      CHECK(worst <= 2.5);
    }
  }
}

TEST_CASE("erf is 1 where it rounds to 1, and zeros keep their sign") {
  const OpenClHost host;
  HostTensor x(DType::f32, {16});
  const std::vector<float> edges = {3.92f, 3.875f, 4, 5, 100, INFINITY, 0, -0.0f, -3.92f, -4, -INFINITY};
  std::copy(edges.begin(), edges.end(), reinterpret_cast<float*>(x.mutable_data()));
  for (const int width : {1, 4, 8, 16}) {
    const HostTensor y = apply(host, "oclc_erf(a)", x, width);
    CAPTURE(width);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      CAPTURE(edges[i]);
      const double r = y.at(static_cast<std::int64_t>(i));
      CHECK(std::signbit(r) == std::signbit(edges[i]));
      if (edges[i] != 3.875f) CHECK(r == (edges[i] == 0 ? 0 : std::copysign(1, edges[i])));
    }
  }
}

TEST_CASE("the largest and the least lane are found wherever they are, and one lane that is not a number is enough") {
  const OpenClHost host;
  for (const int width : {4, 8, 16}) {
    // Of each lane: a vector whose largest lane it is, one whose least lane it is, one where it is not a number.
    HostTensor x(DType::f32, {width, 3, width});
    auto* values = reinterpret_cast<float*>(x.mutable_data());
    for (int at = 0; at < width; ++at) {
      for (int lane = 0; lane < width; ++lane) {
        float* v = values + at * 3 * width + lane;
        v[0] = lane == at ? 7.0f : static_cast<float>(-lane);
        v[width] = lane == at ? -70.0f : static_cast<float>(lane);
        v[2 * width] = lane == at ? NAN : static_cast<float>(lane);
      }
    }
    const std::string source = prelude_for("oclc_lanes_max oclc_lanes_min") + fmt::format(R"(
__kernel void run(__global const float* x, __global float* y) {{
  const int i = get_group_id(0);
  y[2 * i] = oclc_lanes_max(vload{0}(i, x));
  y[2 * i + 1] = oclc_lanes_min(vload{0}(i, x));
}}
)",
                                                                                          width);
    const HostTensor y = host.run(source, {x}, HostTensor(DType::f32, {width, 3, 2}), static_cast<std::size_t>(width) * 3);
    for (int at = 0; at < width; ++at) {
      CAPTURE(width);
      CAPTURE(at);
      CHECK(y.at(at * 6) == 7);
      CHECK(y.at(at * 6 + 3) == -70);
      CHECK(std::isnan(y.at(at * 6 + 4)));
      CHECK(std::isnan(y.at(at * 6 + 5)));
    }
  }
}

TEST_CASE("a product with its own sigmoid is within 2.5 ulp from -30 on, within 5 from -87 on, and next to zero below") {
  const OpenClHost host;
  const HostTensor x = all_floats(4001);
  for (const int width : {1, 4, 8, 16}) {
    const HostTensor y = apply(host, "oclc_silu(a)", x, width);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const double a = x.at(i), wanted = a < 0 ? a * (std::exp(a) / (1 + std::exp(a))) : a / (1 + std::exp(-a));
      CAPTURE(width);
      CAPTURE(a);
      if (a < -87)
        CHECK(std::fabs(y.at(i)) <= 2e-36);
      else
        CHECK(error_in_ulp(static_cast<float>(y.at(i)), wanted) <= (a < -30 ? 5 : 2.5));
    }
  }
}

namespace {

struct CType {
  DType dtype;
  const char* name;
  std::vector<int> widths;
};

const std::vector<CType>& types() {
  static const std::vector<CType> list = {{DType::f32, "float", {1, 4, 8, 16}},
                                          {DType::f64, "double", {1}},
                                          {DType::i8, "char", {1}},
                                          {DType::u8, "uchar", {1}},
                                          {DType::i16, "short", {1}},
                                          {DType::u16, "ushort", {1}},
                                          {DType::i32, "int", {1, 4, 8, 16}},
                                          {DType::u32, "uint", {1, 4, 8, 16}},
                                          {DType::i64, "long", {1}},
                                          {DType::u64, "ulong", {1}},
                                          {DType::boolean, "uchar", {1, 16}}};
  return list;
}

// Values that meet the corners of the type.
std::vector<double> samples(DType dtype) {
  if (dtype == DType::boolean) return {0, 1};
  if (is_float(dtype))
    return {0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3.75, -3.75, 1e-10, -1e10, 0.93, 0.55, 7, -7, INFINITY, -INFINITY, NAN};
  const double bits = 8 * static_cast<double>(size_bytes(dtype)) - (is_signed(dtype) ? 1 : 0);
  std::vector<double> list{
      0, 1, 2, 3, 7, 10, 100, std::exp2(bits - 1), bits > 53 ? std::exp2(bits - 2) + 4096 : std::exp2(bits) - 1};
  if (is_signed(dtype)) list.insert(list.end(), {-1, -2, -3, -7, -100, -std::exp2(bits)});
  return list;
}

// Every combination of samples for `arity` operands, repeated up to a multiple of 16 elements. Where's first operand is a
// condition.
std::vector<HostTensor> operands(const OpDef& def, DType dtype) {
  std::vector<DType> dtypes(static_cast<std::size_t>(def.min_inputs), dtype);
  if (def.name == "where") dtypes[0] = DType::boolean;
  std::int64_t count = 1;
  for (const DType d : dtypes) count *= static_cast<std::int64_t>(samples(d).size());
  const std::int64_t padded = (count + 15) / 16 * 16;
  std::vector<HostTensor> list;
  std::int64_t stride = 1;
  for (const DType d : dtypes) {
    const std::vector<double> values = samples(d);
    const auto size = static_cast<std::int64_t>(values.size());
    HostTensor t(d, {padded});
    for (std::int64_t i = 0; i < padded; ++i) t.set(i, values[static_cast<std::size_t>(i % count / stride % size)]);
    stride *= size;
    list.push_back(std::move(t));
  }
  return list;
}

// Runs the text of all of `defs`, which take the same operands, in one kernel. Row k of the result belongs to defs[k].
HostTensor run_texts(const OpenClHost& host, const std::vector<const OpDef*>& defs, const CType& type,
                     const std::vector<HostTensor>& inputs, int width) {
  std::string parameters, loads, calls;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const char name = static_cast<char>('a' + k);
    const bool truth = inputs[k].dtype() == DType::boolean;
    parameters += fmt::format("__global const {}* p{}, ", truth ? "uchar" : type.name, name);
    const std::string load = width == 1 ? fmt::format("p{}[i]", name) : fmt::format("vload{}(0, p{} + i)", width, name);
    loads += truth ? fmt::format("    const {} {} = {} != 0;\n", vector_type("int", width), name,
                                 width == 1 ? load : fmt::format("convert_int{}({})", width, load))
                   : fmt::format("    const {} {} = {};\n", vector_type(type.name, width), name, load);
  }
  for (std::size_t k = 0; k < defs.size(); ++k) {
    const ScalarOp& scalar = *defs[k]->scalar;
    // Truth values are 1, in vectors -1; they are written as numbers of the operands' type.
    std::string text(is_float(type.dtype) ? scalar.float_text : scalar.integer_text);
    if (scalar.result_is_bool) text = width == 1 ? text : fmt::format("convert_{}(-({}))", vector_type(type.name, width), text);
    calls += width == 1 ? fmt::format("    y[i + {}] = {};\n", static_cast<std::int64_t>(k) * inputs[0].elements(), text)
                        : fmt::format("    vstore{}({}, 0, y + i + {});\n", width, text,
                                      static_cast<std::int64_t>(k) * inputs[0].elements());
  }
  const std::string source =
      prelude() +
      fmt::format("__kernel void run({}__global {}* y) {{\n  for (size_t i = 0; i < {}; i += {}) {{\n{}{}  }}\n}}\n",
                  parameters, type.name, inputs[0].elements(), width, loads, calls);
  return host.run(source, inputs, HostTensor(type.dtype, {static_cast<std::int64_t>(defs.size()), inputs[0].elements()}), 1);
}

// Largest error, in ulp, that OpenCL allows the function on floats; our own functions keep 2.
double allowed_ulp(std::string_view op) {
  if (op == "pow") return 16;
  if (op == "tan" || op == "atanh" || op == "atan") return 5;
  for (const std::string_view four : {"sin", "cos", "asin", "acos", "asinh", "acosh", "sinh", "cosh", "rsqrt"}) {
    if (op == four) return 4;
  }
  return 3;
}

}  // namespace

TEST_CASE("every elementwise operator's kernel text computes what its reference does") {
  const OpenClHost host;
  int compared = 0;
  for (const CType& type : types()) {
    for (const std::string_view group : {"neg", "add", "fma", "where"}) {  // operators with the same operands as this one
      std::vector<const OpDef*> defs;
      std::vector<HostTensor> references;
      const std::vector<HostTensor> inputs = operands(op(group), type.dtype);
      for (const OpDef* def : all_ops()) {
        const bool fits =
            def->scalar && def->min_inputs == op(group).min_inputs && (group == "where") == (def->name == "where");
        if (!fits || (is_float(type.dtype) ? def->scalar->float_text : def->scalar->integer_text).empty()) continue;
        if (type.dtype == DType::boolean && def->name == "where") continue;  // takes truth values as the integers that they are
        try {
          references.push_back(run(def->name, inputs));
          defs.push_back(def);
        } catch (const CompileError&) {
          continue;  // not for this element type: infer says so, and has its own tests
        }
      }
      if (defs.empty()) continue;
      for (const int width : type.widths) {
        const HostTensor found = run_texts(host, defs, type, inputs, width);
        for (std::size_t k = 0; k < defs.size(); ++k) {
          const HostTensor& wanted = references[k];
          const std::int64_t count = wanted.elements(), row = static_cast<std::int64_t>(k) * count;
          double worst = 0;
          std::int64_t worst_at = 0;
          for (std::int64_t i = 0; i < count; ++i) {
            double error = 0;
            if (defs[k]->scalar->result_is_bool || !is_float(type.dtype)) {
              error = found.int_at(row + i) == wanted.int_at(i) ? 0 : kWrong;
            } else if (type.dtype == DType::f32) {
              const double v[3] = {inputs[0].at(i), inputs.size() > 1 ? inputs[1].at(i) : 0,
                                   inputs.size() > 2 ? inputs[2].at(i) : 0};
              error = error_in_ulp(static_cast<float>(found.at(row + i)), defs[k]->scalar->on_float(v[0], v[1], v[2]));
            } else {
              const double a = found.at(row + i), b = wanted.at(i);
              error = (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= 1e-14 * std::fabs(b) ? 0 : kWrong;
            }
            if (error > worst) worst = error, worst_at = i;
          }
          ++compared;
          const std::string what =
              fmt::format("{} on {}, {} lanes: operands {}, {}: found {}, wanted {}", defs[k]->name, type.name, width,
                          inputs[0].at(worst_at), inputs.size() > 1 ? inputs[1].at(worst_at) : 0, found.at(row + worst_at),
                          wanted.at(worst_at));
          INFO(what);
          CHECK(worst <= (type.dtype == DType::f32 ? allowed_ulp(defs[k]->name) : 0));
        }
      }
    }
  }
  CHECK(compared > 400);
}

TEST_CASE("index division rounds down") {
  const OpenClHost host;
  for (const char* type : {"int", "long"}) {
    HostTensor a(DType::i32, {18}), b(DType::i32, {18});
    for (std::int64_t i = 0; i < 18; ++i) {
      a.set_int(i, i - 9);
      b.set_int(i, i % 2 == 0 ? 4 : -4);
    }
    const std::string source =
        prelude() + fmt::format(
                        "__kernel void run(__global const int* a, __global const int* b, __global int* y) {{\n  for (int i = "
                        "0; i < 18; ++i) {{\n    y[2 * i] = "
                        "(int)floor_div(({0})a[i], b[i]);\n    y[2 * i + 1] = (int)floor_mod(({0})a[i], b[i]);\n  }}\n}}\n",
                        type);
    const HostTensor y = host.run(source, {a, b}, HostTensor(DType::i32, {36}), 1);
    for (std::int64_t i = 0; i < 18; ++i) {
      const auto quotient =
          static_cast<std::int64_t>(std::floor(static_cast<double>(a.int_at(i)) / static_cast<double>(b.int_at(i))));
      CHECK(y.int_at(2 * i) == quotient);
      CHECK(y.int_at(2 * i + 1) == a.int_at(i) - quotient * b.int_at(i));
    }
  }
}
