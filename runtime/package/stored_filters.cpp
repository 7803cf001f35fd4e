#include "runtime/package/stored_filters.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/package/error.h"

namespace oclc::package {
namespace {

constexpr std::size_t kWidestWindow = 8, kWidestTaps = kWidestWindow * kWidestWindow;
// Filters that are transformed together: vectors run over them, and the caches hold what lies between the two products.
constexpr std::size_t kTogether = 64;

// sum = ((start + a[0] x[0]) + a[1] x[1]) + a[2] x[2] of kTogether numbers each, in this order, for 1 to 3 terms; x's rows are
// `pitch` apart.
template <int terms, class T>
inline void add(double* __restrict sum, const double* __restrict start, const T* __restrict x, std::size_t pitch,
                const double* a) {
  const double first = a[0], second = terms > 1 ? a[1] : 0, third = terms > 2 ? a[2] : 0;
  const T *y = x + (terms > 1 ? pitch : 0), *z = x + (terms > 2 ? 2 * pitch : 0);
  for (std::size_t c = 0; c < kTogether; ++c) {
    double s = start[c] + first * static_cast<double>(x[c]);
    if constexpr (terms > 1) s += second * static_cast<double>(y[c]);
    if constexpr (terms > 2) s += third * static_cast<double>(z[c]);
    sum[c] = s;
  }
}

// The sum of `count` terms, three at a time: sums stay in registers between them.
template <class T>
void sum_up(double* sum, const T* x, std::size_t pitch, const double* a, std::size_t count) {
  static constexpr double kZeros[kTogether] = {};
  double before[kTogether];
  const double* start = kZeros;
  for (std::size_t i = 0; i < count; i += 3) {
    const T* at = x + i * pitch;
    if (count - i >= 3) {
      add<3>(sum, start, at, pitch, a + i);
    } else if (count - i == 2) {
      add<2>(sum, start, at, pitch, a + i);
    } else {
      add<1>(sum, start, at, pitch, a + i);
    }
    if (count - i > 3) std::copy_n(sum, kTogether, before);
    start = before;
  }
}

// G g G^T of kTogether filters at a time.
class FilterTransform {
 public:
  FilterTransform(std::size_t window, std::size_t taps, const std::byte* matrix) : window_(window), taps_(taps) {
    std::memcpy(matrix_, matrix, window * taps * sizeof(double));
  }

  // `count` neighbours of each row; rows of `from` are `from_pitch` bytes apart, those of `to` `to_pitch`.
  void run(const std::byte* from, std::size_t from_pitch, std::byte* to, std::size_t to_pitch, std::size_t count) {
    for (std::size_t tap = 0; tap < taps_ * taps_; ++tap) std::memcpy(g_[tap], from + tap * from_pitch, count * sizeof(float));
    for (std::size_t i = 0; i < window_; ++i) {
      for (std::size_t x = 0; x < taps_; ++x) sum_up(half_[x], g_[x], taps_ * kTogether, matrix_ + i * taps_, taps_);
      for (std::size_t j = 0; j < window_; ++j) {
        double sum[kTogether];
        float rounded[kTogether];
        sum_up(sum, half_[0], kTogether, matrix_ + j * taps_, taps_);
        for (std::size_t c = 0; c < kTogether; ++c) rounded[c] = static_cast<float>(sum[c]);
        std::memcpy(to + (i * window_ + j) * to_pitch, rounded, count * sizeof(float));
      }
    }
  }

 private:
  const std::size_t window_, taps_;
  double matrix_[kWidestTaps] = {};
  float g_[kWidestTaps][kTogether] = {};
  double half_[kWidestWindow][kTogether] = {};
};

}  // namespace

void check_filters(const QuantizedRun& run) {
  const std::uint64_t window = run.bits, taps = run.has_offsets, lanes = run.lanes;
  const auto corrupt = [](const std::string& what) { throw Error(ErrorKind::corrupt, "the quantized constants: " + what); };
  if (taps < 2 || window < taps || window > kWidestWindow)
    corrupt("filters of " + std::to_string(taps) + " taps for a window of " + std::to_string(window));
  if (run.period == 0 || lanes == 0) corrupt("a panel of no filters");
  const std::uint64_t column = window * window * run.period * sizeof(float);
  if (run.bytes % column != 0 || run.bytes / column < lanes) corrupt("a panel that its filters do not fill");
}

void transform_filters(const QuantizedRun& run, const std::byte* stored, std::byte* to) {
  const std::size_t window = run.bits, taps = run.has_offsets, lanes = run.lanes,
                    width = run.bytes / (window * window * run.period * sizeof(float));
  FilterTransform transform(window, taps, stored);
  const std::byte* filters = stored + window * taps * sizeof(double);
  // Whole panels are one row of filters, others a row a channel.
  const bool whole = lanes == width;
  const std::size_t rows = whole ? 1 : run.period, length = whole ? run.period * lanes : lanes,
                    from_pitch = run.period * lanes * sizeof(float), to_pitch = run.period * width * sizeof(float);
  if (!whole) std::memset(to, 0, run.bytes);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t first = 0; first < length; first += kTogether)
      transform.run(filters + (row * lanes + first) * sizeof(float), from_pitch, to + (row * width + first) * sizeof(float),
                    to_pitch, std::min(kTogether, length - first));
  }
}

}  // namespace oclc::package
