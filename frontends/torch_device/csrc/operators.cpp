#include "frontends/torch_device/csrc/operators.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "frontends/torch_device/csrc/compiled.h"
#include "frontends/torch_device/csrc/copies.h"

namespace oclc::torch_device {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device place_for(std::optional<c10::Device> given) {
  return {kType, given && given->has_index() ? given->index() : current_device()};
}

// The device is current while memory is taken from its allocator.
struct Current {
  explicit Current(c10::Device device) : old(current_device()) { set_current_device(device.index()); }
  ~Current() { set_current_device(old); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  c10::DeviceIndex old;
};

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pin.value_or(false), "device ocl: only tensors of the CPU can be pinned");
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided, "device ocl: wanted a strided layout, found ", *layout);
  const Current current(place_for(device));
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &device_allocator(), kKeys, c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin) {
  TORCH_CHECK(!pin.value_or(false), "device ocl: only tensors of the CPU can be pinned");
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided, "device ocl: wanted a strided layout, found ", *layout);
  const Current current(place_for(device));
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &device_allocator(),
                                           kKeys, c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  std::optional<std::int64_t> at;
  if (offset) at = offset->expect_int();
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), at);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor unfold(const at::Tensor& self, std::int64_t dimension, std::int64_t size, std::int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

// Bytes from the storage's begin to the end of the last element.
std::size_t needed_bytes(const at::TensorImpl* t) {
  if (t->numel() == 0) return 0;
  std::int64_t last = t->storage_offset();
  for (std::int64_t d = 0; d < t->dim(); ++d) last += (t->size(d) - 1) * t->stride(d);
  return static_cast<std::size_t>(last + 1) * t->itemsize();
}

void grow(at::TensorImpl* t) {
  const std::size_t bytes = needed_bytes(t);
  if (bytes > t->storage().nbytes()) resize_storage(t->storage(), bytes);
}

const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  auto* impl = self.unsafeGetTensorImpl();
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (impl->sizes() != sizes) {
    impl->set_sizes_contiguous(sizes);
    grow(impl);
  }
  if (format) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size,
                        c10::SymIntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset.expect_int(), C10_AS_INTARRAYREF_SLOW(size),
                              C10_AS_INTARRAYREF_SLOW(stride));
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset.expect_int());
  if (stride.data())
    impl->set_sizes_and_strides(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
  else
    impl->set_sizes_contiguous(C10_AS_INTARRAYREF_SLOW(size));
  grow(impl);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<std::int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, c10::fromIntArrayRefSlow({count}), c10::SymIntArrayRef{});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sym_sizes(), source.sym_strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  at::Storage none(at::Storage::use_byte_size_t(), 0, device_allocator().allocate(0), &device_allocator(), true);
  return set_storage(self, std::move(none), 0, c10::fromIntArrayRefSlow({0}), c10::SymIntArrayRef{});
}

at::Scalar local_scalar(const at::Tensor& self) {
  at::Tensor host = to_cpu(self);
  return host.item();
}

bool equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  TORCH_CHECK(a.device() == b.device(), "Cannot compare two tensors on different devices. Got: ", a.device(), " and ",
              b.device());
  return a.numel() == 0 || at::eq(a, b).all().item().toBool();
}

// The bytes of zero are zero for every type.
at::Tensor& zero(at::Tensor& self) {
  if (self.numel() == 0) return self;
  if (!self.is_non_overlapping_and_dense()) {
    copy_layout(self, at::zeros({}, self.options()).expand_as(self));
    return self;
  }
  Device& d = device(self.device().index());
  const Place place = place_of(self);
  const cl_uchar byte = 0;
  check(cl::clEnqueueFillBuffer(d.queue, place.memory, &byte, 1, place.offset, self.nbytes(), 0, nullptr, nullptr),
        "filling a tensor");
  return self;
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  if (self.numel() == 0) return self;
  const at::Tensor one = at::scalar_tensor(value, at::TensorOptions().dtype(self.scalar_type()));
  if (!self.is_non_overlapping_and_dense() || self.element_size() > 8) {
    at::Tensor here = at::empty({}, self.options());
    write(here, one.data_ptr(), one.nbytes());
    copy_layout(self, here.expand_as(self));
    return self;
  }
  Device& d = device(self.device().index());
  const Place place = place_of(self);
  check(cl::clEnqueueFillBuffer(d.queue, place.memory, one.data_ptr(), one.nbytes(), place.offset, self.nbytes(), 0, nullptr,
                                nullptr),
        "filling a tensor");
  return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  self.copy_(value.expand_as(self));
  return self;
}

// What torch calls a convolution by for devices that have none of its own.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                       c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  return at::convolution_symint(input, weight, bias, stride, padding, dilation, transposed, output_padding, std::move(groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_gradient(const at::Tensor& gradient, const at::Tensor& input,
                                                                    const at::Tensor& weight, c10::SymIntArrayRef stride,
                                                                    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                                                                    bool transposed, c10::SymIntArrayRef output_padding,
                                                                    c10::SymInt groups, std::array<bool, 3> mask) {
  const c10::SymInt channels = gradient.sym_size(1);
  return at::convolution_backward_symint(gradient, input, weight, c10::SymIntArrayRef(&channels, 1), stride, padding, dilation,
                                         transposed, output_padding, std::move(groups), mask);
}

// Whose schema does not say that it writes the statistics.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(const at::Tensor& input,
                                                                 const std::optional<at::Tensor>& weight,
                                                                 const std::optional<at::Tensor>& bias,
                                                                 const std::optional<at::Tensor>& mean,
                                                                 const std::optional<at::Tensor>& variance, bool training,
                                                                 double momentum, double epsilon) {
  if (!mean || !mean->defined()) return at::_native_batch_norm_legit(input, weight, bias, training, momentum, epsilon);
  at::Tensor means = *mean, variances = *variance;
  return at::_native_batch_norm_legit(input, weight, bias, means, variances, training, momentum, epsilon);
}

bool is_pinned_tensor(const at::Tensor& self, std::optional<at::Device>) {
  return self.is_cpu() && is_pinned(self.storage().data());
}

at::Tensor pin(const at::Tensor& self, std::optional<at::Device>) {
  const auto storage =
      at::Storage(at::Storage::use_byte_size_t(),
                  at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.itemsize()), &pinned_allocator(), false);
  at::Tensor pinned = at::empty({0}, self.options().device(at::kCPU)).set_(storage, 0, self.sizes(), self.strides());
  pinned.copy_(self);
  return pinned;
}

// Whether `x.data = y` may make a tensor of one device a tensor of the other. nn.Module.to() asks: where it may not, each
// module gets parameters of its own, and those that modules share are shared no more.
bool can_become(const at::Tensor& self, const at::Tensor& from) {
  const auto is_dense = [](const at::Tensor& t) {
    return (t.is_cpu() || t.is_privateuseone()) && t.key_set().has_any(c10::DispatchKeySet(c10::DispatchKey::Dense));
  };
  return is_dense(self) && is_dense(from);
}

void boxed(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) { run_operator(op, stack); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage", set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar);
  m.impl("equal", equal);
  m.impl("zero_", zero);
  m.impl("fill_.Scalar", fill);
  m.impl("fill_.Tensor", fill_tensor);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_gradient);
  m.impl("native_batch_norm", native_batch_norm);
  m.impl("_has_compatible_shallow_copy_type", can_become);
  m.impl("is_pinned", is_pinned_tensor);
  m.impl("_pin_memory", pin);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed>()); }

}  // namespace

void serve(const std::vector<std::string>& operators) {
  static auto* library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const std::string& name : operators) library->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&boxed>());
}

}  // namespace oclc::torch_device
