// A text as training windows and held-out windows.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace tiny_gpt {

// Random numbers by place: number `index` of the stream `stream` (the finaliser of splitmix64, twice).
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
inline std::uint64_t random_bits(std::uint64_t stream, std::uint64_t index) {
  return mix(mix(stream * 0x9E3779B97F4A7C15u + 1) + index * 0xD1B54A32D192ED03u);
}

// Every tenth stretch of kStretch characters is held out; no window reaches from one kind of stretch into the other.
class Text {
 public:
  Text(const std::string& file, std::size_t context) : context_(context) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in || text.size() < kStretch * 10)
      throw std::runtime_error(file + ": wanted a text of " + std::to_string(kStretch * 10) + " characters or more");
    symbols_ = text;
    std::sort(symbols_.begin(), symbols_.end());
    symbols_.erase(std::unique(symbols_.begin(), symbols_.end()), symbols_.end());
    for (const char c : text) tokens_.push_back(token(c));
    for (std::size_t begin = 0; begin + context_ < tokens_.size(); ++begin) {
      const bool held = is_held_out(begin);
      if (held != is_held_out(begin + context_)) continue;
      if (!held)
        training_.push_back(begin);
      else if (begin % kStretch % context_ == 0)
        held_out_.push_back(begin);
    }
  }

  std::size_t size() const { return tokens_.size(); }
  const std::string& symbols() const { return symbols_; }
  std::size_t held_out_windows() const { return held_out_.size(); }
  // Of a character that the text holds.
  std::int64_t token(char c) const { return std::lower_bound(symbols_.begin(), symbols_.end(), c) - symbols_.begin(); }

  // Window `index` of the held-out ones, which follow each other, or one drawn for `index`: its tokens, and after each the
  // next.
  void held_out(std::size_t index, std::int64_t* tokens, std::int64_t* next) const { copy(held_out_[index], tokens, next); }
  void training(std::uint64_t index, std::int64_t* tokens, std::int64_t* next) const {
    copy(training_[random_bits(1, index) % training_.size()], tokens, next);
  }

 private:
  static constexpr std::size_t kStretch = 2000;

  static bool is_held_out(std::size_t at) { return at / kStretch % 10 == 9; }
  void copy(std::size_t begin, std::int64_t* tokens, std::int64_t* next) const {
    const auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(begin), to = from + static_cast<std::ptrdiff_t>(context_);
    std::copy(from, to, tokens);
    std::copy(from + 1, to + 1, next);
  }

  const std::size_t context_;
  std::string symbols_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::size_t> training_, held_out_;  // where windows begin
};

}  // namespace tiny_gpt
