#include "frontends/torch_device/csrc/call.h"

#include <algorithm>
#include <numeric>

namespace oclc::torch_device {
namespace {

bool has_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
    case at::kChar:
    case at::kShort:
    case at::kInt:
    case at::kLong:
    case at::kByte:
    case at::kBool:
    case at::kUInt16:
    case at::kUInt32:
    case at::kUInt64:
      return true;
    default:
      return false;
  }
}

class KeyText {
 public:
  explicit KeyText(Call::Key kind) : kind_(kind) { text.reserve(256); }
  void mark(char c) { text.push_back(c); }
  template <class T>
  void value(const T& v) {
    text.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void number(double v) {
    mark('f');
    if (kind_ == Call::Key::kExact) value(v);
  }
  void tensor(const at::Tensor& t) {
    if (!t.defined()) return mark('u');
    if (t.is_cpu() && t.unsafeGetTensorImpl()->is_wrapped_number()) {
      const c10::Scalar s = t.item();
      return s.isFloatingPoint() ? number(s.toDouble()) : scalar(s);
    }
    mark(t.is_cpu() ? 'c' : 't');
    mark(static_cast<char>(t.scalar_type()));
    mark(static_cast<char>(t.dim()));
    kind_ == Call::Key::kSizes ? pattern(t) : sizes(t);
  }
  void scalar(const c10::Scalar& s) {
    if (s.isBoolean()) {
      mark(s.toBool() ? 'T' : 'F');
    } else if (s.isFloatingPoint()) {
      number(s.toDouble());
    } else if (s.isComplex()) {
      mark('z');
      value(s.toComplexDouble());
    } else {
      mark('i');
      value(s.toLong());
    }
  }
  void any(const c10::IValue& v) {
    if (v.isTensor()) {
      tensor(v.toTensor());
    } else if (v.isNone()) {
      mark('n');
    } else if (v.isInt()) {
      mark('i');
      value(v.toInt());
    } else if (v.isDouble()) {
      number(v.toDouble());
    } else if (v.isBool()) {
      mark(v.toBool() ? 'T' : 'F');
    } else if (v.isScalar()) {
      scalar(v.toScalar());
    } else if (v.isString()) {
      mark('s');
      value(v.toStringRef().size());
      text.append(v.toStringRef());
    } else if (v.isTensorList()) {
      list(v.toTensorVector());
    } else if (v.isIntList()) {
      list(v.toIntVector());
    } else if (v.isDoubleList()) {
      list(v.toDoubleVector());
    } else if (v.isBoolList() || v.isList()) {
      const auto items = v.toListRef();
      mark('[');
      value(items.size());
      for (const c10::IValue& item : items) any(item);
    } else if (v.isDevice()) {
      mark('d');
    } else {
      mark('?');
    }
  }
  std::string text;

 private:
  template <class T>
  void list(const std::vector<T>& items) {
    mark('[');
    value(items.size());
    for (const T& item : items) {
      if constexpr (std::is_same_v<T, at::Tensor>)
        tensor(item);
      else if constexpr (std::is_same_v<T, double>)
        number(item);
      else
        value(item);
    }
  }
  void sizes(const at::Tensor& t) {
    for (const std::int64_t d : t.sizes()) value(d);
    if (t.is_contiguous()) return mark('r');
    mark('/');
    for (const std::int64_t d : t.strides()) value(d);
  }
  // Of each axis which axis of the call had this size first (0: the size 1), and how the axes lie in memory.
  void pattern(const at::Tensor& t) {
    for (const std::int64_t d : t.sizes()) {
      if (d == 1) {
        mark(0);
        continue;
      }
      const auto found = std::find(seen_.begin(), seen_.end(), d);
      mark(static_cast<char>(1 + (found - seen_.begin())));
      if (found == seen_.end()) seen_.push_back(d);
    }
    if (t.is_contiguous()) return mark('r');
    std::vector<std::int64_t> order(static_cast<std::size_t>(t.dim()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return t.stride(a) > t.stride(b); });
    std::int64_t step = 1;
    bool dense = true;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (t.size(*at) == 1 || t.stride(*at) == 0) continue;
      dense = dense && t.stride(*at) == step;
      step *= t.size(*at);
    }
    if (!dense) return mark('/');
    for (const std::int64_t d : order) {
      mark(static_cast<char>(d));
      mark(t.stride(d) == 0 && t.size(d) != 1 ? 'x' : '-');
    }
  }

  Call::Key kind_;
  std::vector<std::int64_t> seen_;
};

}  // namespace

Call::Call(const c10::OperatorHandle& called, const torch::jit::Stack& stack)
    : op(called), begin(stack.size() - called.schema().arguments().size()), stack_(stack) {
  const auto& arguments = op.schema().arguments();
  for (const auto& argument : arguments) out = out || argument.is_out();
  tensors.reserve(8);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = arguments[i].alias_info();
    take(stack[begin + i], alias && alias->isWrite());
  }
}

void Call::take(const c10::IValue& value, bool is_written) {
  if (value.isTensor()) {
    const at::Tensor& t = value.toTensor();
    if (!t.defined()) return;
    if (t.is_cpu() && t.unsafeGetTensorImpl()->is_wrapped_number()) {
      if (t.is_floating_point()) numbers.push_back(t.item().toDouble());
      plain = plain && !t.is_complex();
      return;
    }
    plain = plain && t.layout() == at::kStrided && has_type(t.scalar_type());
    if (t.is_cpu()) {
      mixed = mixed || t.dim() > 0;
    } else {
      on_device = true;
      if (device < 0) device = t.device().index();
      plain = plain && t.device().type() == c10::DeviceType::PrivateUse1 && t.device().index() == device;
    }
    empty = empty || (t.numel() == 0 && !(is_written && out));
    tensors.push_back(t);
    written.push_back(is_written);
  } else if (value.isTensorList()) {
    for (const at::Tensor& t : value.toTensorVector()) take(t, is_written);
  } else if (value.isDouble()) {
    numbers.push_back(value.toDouble());
  } else if (value.isScalar()) {
    const c10::Scalar s = value.toScalar();
    if (s.isFloatingPoint()) numbers.push_back(s.toDouble());
    plain = plain && !s.isComplex();
  } else if (value.isDoubleList()) {
    for (const double v : value.toDoubleVector()) numbers.push_back(v);
  } else if (value.isIntList() || value.isBoolList()) {
    return;
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) take(item, is_written);
  } else if (value.isDevice() && device < 0 && value.toDevice().type() == c10::DeviceType::PrivateUse1) {
    device = value.toDevice().index();
  } else if (value.isGenerator()) {
    plain = false;
  }
}

std::string Call::key(Key kind) const {
  KeyText text(kind);
  text.value(&op.schema());
  text.mark(static_cast<char>(device));
  for (std::size_t i = begin; i < stack_.size(); ++i) text.any(stack_[i]);
  return std::move(text.text);
}

}  // namespace oclc::torch_device
