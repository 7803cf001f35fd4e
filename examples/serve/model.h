// A plan as a service sees it: inputs and outputs, and the dimension along which requests are put together.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "examples/serve/protocol.h"

namespace serve {

class Model {
 public:
  // Throws oclc::rt::Error, or Refusal for a plan that cannot be served.
  Model(std::string name, const std::string& path, const std::string& device);

  // Throws Refusal 400 where a request is not one of this model; otherwise how many rows it has (1 without a batch dimension).
  std::int64_t rows(const Request& request) const;
  // The request's shapes without its rows: requests of the same go together.
  std::vector<std::int64_t> shapes(const Request& request) const;

  // The symbol that is the first dimension of every input and output, and of nothing else; "" without one.
  const std::string& batch_dim() const { return batch_dim_; }
  // Zeros of `rows` rows; none where another dimension is open.
  std::optional<Request> zeros(std::int64_t rows) const;
  std::string description() const;  // as JSON

  const std::string name;
  const oclc::rt::Plan plan;
  const oclc::rt::Context context;
  const std::uint32_t entry;
  const std::vector<oclc_binding_info> inputs, outputs;

 private:
  std::string batch_dim_;
};

}  // namespace serve
