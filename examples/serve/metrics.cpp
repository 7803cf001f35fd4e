#include "examples/serve/metrics.h"

#include <cstdio>

namespace serve {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string head(const std::string& name, const std::string& help, const char* type) {
  return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

}  // namespace

template <std::size_t N>
std::string Metrics::Histogram<N>::text(const std::string& name, const std::string& help) const {
  std::string result = head(name, help, "histogram");
  for (std::size_t i = 0; i < N; ++i)
    result += name + "_bucket{le=\"" + number(bounds[i]) + "\"} " + std::to_string(counts[i]) + "\n";
  return result + name + "_bucket{le=\"+Inf\"} " + std::to_string(all) + "\n" + name + "_sum " + number(sum) + "\n" + name +
         "_count " + std::to_string(all) + "\n";
}

void Metrics::answered(int code, double seconds) {
  const std::lock_guard lock(mutex_);
  ++answers_[code];
  seconds_.add(seconds);
}

void Metrics::ran(std::int64_t rows, int requests, double queued) {
  const std::lock_guard lock(mutex_);
  rows_.add(static_cast<double>(rows));
  batched_requests_ += static_cast<std::uint64_t>(requests);
  queued_.add(queued);
}

void Metrics::reloaded() {
  const std::lock_guard lock(mutex_);
  ++reloads_;
}

std::string Metrics::text(std::size_t queued) const {
  const std::lock_guard lock(mutex_);
  std::string text = head("serve_requests_total", "Inference requests by HTTP status.", "counter");
  for (const auto& [code, count] : answers_)
    text += "serve_requests_total{code=\"" + std::to_string(code) + "\"} " + std::to_string(count) + "\n";
  text += seconds_.text("serve_request_seconds", "From a request's arrival to its answer.");
  text += queued_.text("serve_queue_seconds", "How long the oldest request of a batch waited.");
  text += rows_.text("serve_batch_rows", "Rows of the batches that ran.");
  text += head("serve_batched_requests_total", "Requests in batches that ran.", "counter") + "serve_batched_requests_total " +
          std::to_string(batched_requests_) + "\n";
  text += head("serve_queue_length", "Requests that wait.", "gauge") + "serve_queue_length " + std::to_string(queued) + "\n";
  text +=
      head("serve_reloads_total", "Plans loaded anew.", "counter") + "serve_reloads_total " + std::to_string(reloads_) + "\n";
  return text;
}

}  // namespace serve
