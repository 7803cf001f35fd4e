// A compiled model on a device, for timing.
#pragma once
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "tools/oclc/plan_view.h"

namespace oclc::tool {

// A session with inputs of fixed pseudo-random numbers (floats in [-1, 1), integers and booleans 0 or 1) and host memory for
// the outputs.
class BenchRun {
 public:
  // `dims` holds a value for every symbol. Throws rt::Error.
  BenchRun(const rt::Plan& plan, const rt::Context& context, const SymbolValues& dims, const std::string& entry = "predict");
  double run_ms();  // one blocking run

  // Largest |a - b| / max|b| over the float outputs of two runs of one model; 1 where other outputs differ.
  static double difference(const BenchRun& a, const BenchRun& b);

 private:
  struct Tensor {
    oclc_dtype dtype;
    std::vector<std::byte> bytes;
  };
  Tensor& bind(oclc_direction direction, const oclc_binding_info& info);
  rt::Session session_;
  std::uint32_t entry_;
  std::vector<std::unique_ptr<Tensor>> inputs_, outputs_;
};

// Times of one side, sorted.
struct Times {
  std::vector<double> sorted_ms;
  double at(double fraction) const;  // 0: fastest, 0.5: median
};

}  // namespace oclc::tool
