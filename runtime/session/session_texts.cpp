#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/session/session.h"

namespace oclc::runtime {

// The shape fits the array, which was checked.
std::vector<std::string> Session::copy_texts(const Port& p, const oclc_tensor& tensor) const {
  std::size_t total = 1;
  for (std::uint32_t d = 0; d < tensor.rank; ++d) total *= static_cast<std::size_t>(tensor.shape[d]);
  const auto* from = static_cast<const char* const*>(tensor.host);
  std::vector<std::string> texts;
  texts.reserve(total);
  for (std::size_t i = 0; i < total; ++i) {
    if (!from[i]) throw Failure(OCLC_E_BINDING, p.label + ": element " + std::to_string(i) + " is NULL, wanted a string");
    texts.emplace_back(from[i]);
  }
  return texts;
}

void Session::write_texts(const Port& p) {
  std::vector<std::int32_t> numbers;
  for (const std::string& text : p.bound->texts) numbers.push_back(strings_.number_of(text));
  check_cl(clEnqueueWriteBuffer(context_->queue(), p.staging.get(), CL_TRUE, 0, numbers.size() * sizeof numbers[0],
                                numbers.data(), 0, nullptr, nullptr),
           "writing " + p.label);
}

void Session::read_texts(const Port& p, std::uint64_t bytes) {
  std::vector<std::int32_t> numbers(bytes / sizeof(std::int32_t));
  check_cl(clEnqueueReadBuffer(context_->queue(), p.staging.get(), CL_TRUE, 0, bytes, numbers.data(), 0, nullptr, nullptr),
           "reading " + p.label);
  auto* to = static_cast<const char**>(p.bound->host);
  for (std::size_t i = 0; i < numbers.size(); ++i) to[i] = strings_.require(numbers[i]).c_str();
}

}  // namespace oclc::runtime
