#include "tools/oclrun/training/evaluation.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace oclc::oclrun {
namespace {

constexpr const char* kEntry = "eval_step";

double scalar(const std::vector<std::byte>& bytes, oclc_dtype dtype) {
  io::Tensor t;
  t.dtype = dtype;
  t.data = bytes;
  return t.at(0);
}

}  // namespace

std::string eval_line(const EvalResult& r) {
  char text[160];
  std::snprintf(text, sizeof text, "eval: step=%llu loss=%.6g", static_cast<unsigned long long>(r.step), r.loss);
  std::string line = text;
  if (r.accuracy) {
    std::snprintf(text, sizeof text, " accuracy=%.2f %%", *r.accuracy);
    line += text;
  }
  return line;
}

Evaluation::Evaluation(Runner& runner, const rt::Plan& plan, const Options& options, std::int64_t batch)
    : runner_(runner), batch_(batch), batches_(0, false) {
  std::uint32_t found = 0;
  if (oclc_plan_find_entry(plan.get(), kEntry, &found, nullptr) != OCLC_OK)
    throw UsageError{std::string("--eval-data: the plan has no entry point '") + kEntry + "', which oclc --train adds"};
  entry_ = found;
  const std::vector<oclc_binding_info> inputs = plan.inputs(entry_);
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    const auto given = std::find_if(options.eval_data.begin(), options.eval_data.end(),
                                    [&](const auto& d) { return d.first == inputs[i].name; });
    if (given == options.eval_data.end())
      throw UsageError{std::string("--eval-data: entry point '") + kEntry + "' has input '" + inputs[i].name + "' " +
                       inputs[i].shape_text + " as well: give --eval-data " + inputs[i].name + "=FILE"};
    batches_.add(inputs[i], given->second, scale_of(options, inputs[i].name));
    const char* axis = oclc_plan_dimension_text(plan.get(), entry_, OCLC_INPUT, i, 0);
    const std::string size = axis ? axis : "";
    fixed_ = fixed_ || size.find_first_not_of("0123456789") == std::string::npos ||
             std::any_of(options.dims.begin(), options.dims.end(), [&](const auto& dim) { return dim.first == size; });
  }
  for (const auto& [name, file] : options.eval_data) {
    if (std::none_of(inputs.begin(), inputs.end(), [&, &n = name](const auto& input) { return n == input.name; }))
      throw UsageError{std::string("--eval-data: entry point '") + kEntry + "' has no input '" + name + "'"};
  }
  for (const oclc_binding_info& output : plan.outputs(entry_)) counts_ = counts_ || std::strcmp(output.name, "correct") == 0;
  if (!fixed_) batch_ = std::min(batch_, static_cast<std::int64_t>(batches_.count()));
  batches_.set_size(batch_);
  for (const Batches::Source& source : batches_.sources()) {
    io::Tensor t;
    t.name = source.samples.name;
    t.dtype = source.dtype;
    t.shape = source.shape;
    t.data.resize(io::tensor_bytes(source.file, t.dtype, t.shape));
    buffers_.push_back(std::move(t));
  }
}

void Evaluation::bind(const io::Tensor& t, std::int64_t rows) {
  std::vector<std::int64_t> shape = t.shape;
  shape[0] = rows;
  oclc_tensor view = OCLC_INIT(oclc_tensor);
  view.dtype = t.dtype;
  view.rank = static_cast<std::uint32_t>(shape.size());
  view.shape = shape.data();
  view.host = const_cast<std::byte*>(t.data.data());
  view.bytes = t.data.size() / static_cast<std::size_t>(t.shape[0]) * static_cast<std::size_t>(rows);
  runner_.session().set_input(entry_, t.name, view);
}

EvalResult Evaluation::run(std::uint64_t step) {
  EvalResult result;
  result.step = step;
  const auto all = static_cast<std::int64_t>(batches_.count());
  double loss = 0, right = 0, samples = 0, labels = 0;
  float loss_now = 0;
  std::vector<std::byte> right_now(8);
  oclc_dtype right_type = OCLC_F32;
  rt::Session& session = runner_.session();
  for (std::int64_t at = 0; at < all; at += batch_) {
    const std::int64_t rows = std::min(batch_, all - at);
    if (rows < batch_ && fixed_) break;
    for (const io::Tensor& t : buffers_) oclc_session_set_input(session.get(), entry_, t.name.c_str(), nullptr);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      batches_.fill(i, static_cast<std::uint64_t>(at / batch_), buffers_[i].data.data());
      bind(buffers_[i], rows);
    }
    session.set_output(entry_, "loss", &loss_now, {});
    if (counts_) {
      for (const oclc_binding_info& output : runner_.plan().outputs(entry_))
        if (std::strcmp(output.name, "correct") == 0) right_type = output.dtype;
      oclc_tensor view = OCLC_INIT(oclc_tensor);
      view.dtype = right_type;
      view.host = right_now.data();
      view.bytes = right_now.size();
      session.set_output(entry_, "correct", view);
    }
    session.run(entry_);
    const auto share = static_cast<double>(rows);
    loss += static_cast<double>(loss_now) * share;
    samples += share;
    if (!counts_) continue;
    right += scalar(right_now, right_type);
    for (const io::Tensor& t : buffers_)
      if (t.name == "labels") labels += static_cast<double>(t.elements()) / static_cast<double>(t.shape[0]) * share;
  }
  result.loss = samples > 0 ? loss / samples : 0;
  if (counts_ && labels > 0) result.accuracy = 100 * right / labels;
  return result;
}

}  // namespace oclc::oclrun
