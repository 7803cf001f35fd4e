// What the service counts, as Prometheus reads it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace serve {

class Metrics {
 public:
  void answered(int code, double seconds);                   // a request, from its arrival to its answer
  void ran(std::int64_t rows, int requests, double queued);  // a batch, and how long its oldest request waited, in seconds
  void reloaded();
  // `queued`: requests that wait now.
  std::string text(std::size_t queued) const;

 private:
  // Counts of values up to the bounds, and of all.
  template <std::size_t N>
  struct Histogram {
    std::array<double, N> bounds;
    std::array<std::uint64_t, N> counts{};
    std::uint64_t all = 0;
    double sum = 0;
    void add(double value) {
      for (std::size_t i = 0; i < N; ++i) counts[i] += value <= bounds[i];
      ++all, sum += value;
    }
    std::string text(const std::string& name, const std::string& help) const;
  };

  mutable std::mutex mutex_;
  std::map<int, std::uint64_t> answers_;
  std::uint64_t reloads_ = 0;
  Histogram<14> seconds_{{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}};
  Histogram<14> queued_{{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}};
  Histogram<8> rows_{{1, 2, 4, 8, 16, 32, 64, 128}};
  std::uint64_t batched_requests_ = 0;
};

}  // namespace serve
