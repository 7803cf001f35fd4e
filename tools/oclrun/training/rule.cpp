#include "tools/oclrun/training/rule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "tools/oclrun/options.h"

namespace oclc::oclrun {
namespace {

double number(const std::string& where, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw UsageError{where + ": wanted a finite number, found '" + text + "'"};
  return value;
}

// From `a` to `b` along half a cosine.
double between(double a, double b, double share) { return b + (a - b) * (1 + std::cos(3.14159265358979323846 * share)) / 2; }

}  // namespace

Rule::Rule(const std::string& name, const std::string& text) : name_(name) {
  const std::string where = "--set " + name;
  std::string rest = text;
  const std::size_t colon = rest.find(':');
  if (colon != rest.npos) {
    const std::string shape = rest.substr(0, colon);
    static const std::map<std::string, Shape> kShapes = {{"constant", Shape::constant},       {"step", Shape::step},
                                                         {"cosine", Shape::cosine},           {"linear", Shape::linear},
                                                         {"exponential", Shape::exponential}, {"onecycle", Shape::onecycle}};
    const auto known = kShapes.find(shape);
    if (known == kShapes.end())
      throw UsageError{where + ": wanted constant, step, cosine, linear, exponential or onecycle before the colon, found '" +
                       shape + "'"};
    shape_ = known->second;
    rest = rest.substr(colon + 1);
  }
  std::map<std::string, double> keys;
  const std::size_t comma = std::min(rest.find(','), rest.size());
  value_ = number(where, rest.substr(0, comma));
  for (std::size_t at = comma; at < rest.size();) {
    const std::size_t end = std::min(rest.find(',', at + 1), rest.size());
    const std::string item = rest.substr(at + 1, end - at - 1);
    const std::size_t equals = item.find('=');
    if (equals == item.npos) throw UsageError{where + ": wanted KEY=NUMBER, found '" + item + "'"};
    keys[item.substr(0, equals)] = number(where + " " + item.substr(0, equals), item.substr(equals + 1));
    at = end;
  }
  const auto take = [&](const char* key, bool needed, double otherwise) {
    const auto found = keys.find(key);
    if (found == keys.end() && needed) throw UsageError{where + ": wanted " + key + "=NUMBER in '" + text + "'"};
    const double value = found == keys.end() ? otherwise : found->second;
    if (found != keys.end()) keys.erase(found);
    return value;
  };
  warmup_ = take("warmup", false, 0);
  if (shape_ == Shape::step) length_ = take("every", true, 1), factor_ = take("factor", true, 1);
  if (shape_ == Shape::exponential) length_ = take("every", false, 1), factor_ = take("factor", true, 1);
  if (shape_ == Shape::onecycle) length_ = take("steps", true, 1);
  if (shape_ == Shape::cosine || shape_ == Shape::linear) length_ = take("steps", true, 1), end_ = take("end", false, 0);
  if (!keys.empty()) throw UsageError{where + ": unknown key '" + keys.begin()->first + "' in '" + text + "'"};
  if (length_ < 1 || warmup_ < 0) throw UsageError{where + ": wanted a number of steps, at least 1, in '" + text + "'"};
}

double Rule::at(std::uint64_t step) const {
  const auto t = static_cast<double>(step);
  if (t < warmup_) return value_ * (t + 1) / warmup_;
  const double u = t - warmup_;
  switch (shape_) {
    case Shape::step:
      return value_ * std::pow(factor_, std::floor(u / length_));
    case Shape::cosine:
      return between(value_, end_, std::min(u / length_, 1.0));
    case Shape::linear:
      return value_ + (end_ - value_) * std::min(u / length_, 1.0);
    case Shape::exponential:
      return value_ * std::pow(factor_, u / length_);
    case Shape::onecycle: {
      const double rise = 0.3 * length_, low = value_ / 25, last = low / 1e4;
      if (u < rise) return between(low, value_, u / rise);
      return between(value_, last, std::min((u - rise) / (length_ - rise), 1.0));
    }
    default:
      return value_;
  }
}

}  // namespace oclc::oclrun
