// Requests and answers of the open inference protocol (KServe V2) over HTTP, as Triton, OpenVINO's model server and others
// speak it: JSON, or JSON with the tensors' bytes behind it ("binary tensor data").
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oclc/oclc.hpp"

namespace serve {

struct Tensor {
  std::string name;
  oclc_dtype dtype = OCLC_F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

struct Request {
  std::string id;
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;  // asked for; empty: all
  bool binary = false;               // the answer's tensors are bytes behind its JSON
  std::uint64_t timeout_us = 0;      // 0: none
};

// Why a request has no result, as HTTP says it.
struct Refusal {
  int code;
  std::string message;
};

struct Answer {
  std::string body;
  std::size_t json_bytes = 0;  // with binary data: of the JSON in front
};

// `json_bytes`: of the JSON that `body` begins with; the rest is tensors' bytes. Throws Refusal 400.
Request read_request(std::string_view body, std::size_t json_bytes);
Answer write_answer(const std::string& model, const Request& request, const std::vector<Tensor>& outputs);
std::string error_body(const std::string& message);

// "FP32", "INT64", ..; throws Refusal 400 for a name that is none.
const char* type_name(oclc_dtype dtype);
oclc_dtype type_of(const std::string& name);

}  // namespace serve
