#include "runtime/session/host_step.h"

#include <algorithm>
#include <cstring>

#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/host_ops.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

std::string described(const fb::Host& host) {
  std::string nodes;
  for (std::uint32_t i = 0; i < count(host.nodes()); ++i) nodes += (i ? ", " : "") + host.nodes()->Get(i)->str();
  return "operator '" + host.op()->str() + "' of the host" + (nodes.empty() ? "" : " (nodes " + nodes + ")");
}

class HostStep {
 public:
  HostStep(const fb::Host& host, const LoadedPlan& loaded, std::span<const Place> places, std::span<const std::int64_t> symbols,
           cl_command_queue queue, StringTable& strings)
      : host_(host), loaded_(loaded), places_(places), symbols_(symbols), queue_(queue), strings_(strings) {}

  void run() {
    const package::HostOp& op = *package::find_host_op(host_.op()->string_view());
    package::HostSettings settings;
    if (host_.integers()) settings.integers.assign(host_.integers()->begin(), host_.integers()->end());
    for (std::uint32_t i = 0; i < count(host_.texts()); ++i) settings.texts.push_back(host_.texts()->Get(i)->str());
    std::vector<package::HostValue> inputs, outputs;
    for (std::uint32_t i = 0; i < count(host_.inputs()); ++i) inputs.push_back(read(*host_.inputs()->Get(i)));
    for (std::uint32_t i = 0; i < count(host_.outputs()); ++i) outputs.push_back(value(*host_.outputs()->Get(i)));
    try {
      op.run(settings, inputs, outputs);
    } catch (const package::HostOpError& error) {
      throw Failure(OCLC_E_BINDING, described(host_) + ": " + error.what());
    }
    for (std::uint32_t i = 0; i < count(host_.outputs()); ++i) write(*host_.outputs()->Get(i), outputs[i]);
  }

 private:
  struct Slice {
    Place place;
    std::uint64_t bytes = 0;
  };

  fb::DType dtype(const fb::HostOperand& operand) const {
    return loaded_.plan().buffers()->Get(static_cast<std::uint32_t>(operand.at()->buffer()))->dtype();
  }

  // Zeros, or empty texts.
  package::HostValue value(const fb::HostOperand& operand) const {
    package::HostValue v;
    v.dtype = dtype(operand);
    std::uint64_t elements = 1;
    for (std::uint32_t d = 0; d < count(operand.shape()); ++d) {
      v.shape.push_back(evaluate(operand.shape()->Get(d), symbols_, "a dimension"));
      if (v.shape.back() < 0 || __builtin_mul_overflow(elements, static_cast<std::uint64_t>(v.shape.back()), &elements))
        throw Failure(OCLC_E_PLAN, loaded_.package().name() + ": invalid plan: " + described(host_) +
                                       " has an operand of shape " + shape_text(v.shape));
    }
    slice(operand, elements);  // which bounds the memory asked for
    if (v.dtype == fb::DType::string_)
      v.texts.resize(elements);
    else
      v.data.resize(elements * package::dtype_bytes(v.dtype));
    return v;
  }

  Slice slice(const fb::HostOperand& operand, std::uint64_t elements) const {
    const auto index = static_cast<std::uint32_t>(operand.at()->buffer());
    const fb::Buffer& buffer = *loaded_.plan().buffers()->Get(index);
    const std::uint64_t element = package::dtype_bytes(buffer.dtype());
    Place place = places_[index];
    const std::int64_t from = evaluate(operand.at()->value(), symbols_, "the offset of an operand", 0);
    // What the size is now, but never more than was laid out.
    const std::int64_t bytes = evaluate(buffer.bytes(), symbols_, "the size of a buffer");
    const std::uint64_t room = bytes < 0 ? 0 : std::min(static_cast<std::uint64_t>(bytes), place.bytes) / element;
    const auto skip = static_cast<std::uint64_t>(from);
    if (from < 0 || skip > room || elements > room - skip)
      throw Failure(OCLC_E_PLAN, loaded_.package().name() + ": invalid plan: " + described(host_) + " uses " +
                                     std::to_string(elements) + " elements from " + std::to_string(from) + " on of buffer " +
                                     std::to_string(index) + ", which has " + std::to_string(room));
    place.offset += skip * element;
    return {place, elements * element};
  }

  package::HostValue read(const fb::HostOperand& operand) const {
    package::HostValue v = value(operand);
    if (v.elements() == 0) return v;
    const Slice from = slice(operand, v.elements());
    std::vector<std::int32_t> numbers(v.texts.size());
    void* to = v.dtype == fb::DType::string_ ? static_cast<void*>(numbers.data()) : v.data.data();
    check_cl(clEnqueueReadBuffer(queue_, from.place.memory, CL_TRUE, from.place.offset, from.bytes, to, 0, nullptr, nullptr),
             "reading an operand of " + described(host_));
    for (std::size_t i = 0; i < numbers.size(); ++i) v.texts[i] = strings_.require(numbers[i]);
    return v;
  }

  void write(const fb::HostOperand& operand, const package::HostValue& v) const {
    if (v.elements() == 0) return;
    const Slice to = slice(operand, v.elements());
    std::vector<std::int32_t> numbers;
    for (const std::string& text : v.texts) numbers.push_back(strings_.number_of_made(text));
    const void* from = v.dtype == fb::DType::string_ ? static_cast<const void*>(numbers.data()) : v.data.data();
    check_cl(clEnqueueWriteBuffer(queue_, to.place.memory, CL_TRUE, to.place.offset, to.bytes, from, 0, nullptr, nullptr),
             "writing a result of " + described(host_));
  }

  const fb::Host& host_;
  const LoadedPlan& loaded_;
  std::span<const Place> places_;
  std::span<const std::int64_t> symbols_;
  cl_command_queue queue_;
  StringTable& strings_;
};

}  // namespace

void run_host(const fb::Host& host, const LoadedPlan& loaded, std::span<const Place> places,
              std::span<const std::int64_t> symbols, cl_command_queue queue, StringTable& strings) {
  HostStep(host, loaded, places, symbols, queue, strings).run();
}

}  // namespace oclc::runtime
