#include "frontends/torch_device/csrc/copies.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <deque>
#include <map>

#include "frontends/torch_device/csrc/compiled.h"

namespace oclc::torch_device {
namespace {

constexpr int kMostAxes = 8;

// to[i] = from[i] over an index space of up to eight axes, strides in elements.
constexpr const char* kStridedCopy = R"(
__kernel void strided_copy(__global const T* from, __global T* to, ulong from_offset, ulong to_offset, int axes, ulong8 sizes,
                           long8 from_strides, long8 to_strides, ulong count) {
  const ulong n[8] = {sizes.s0, sizes.s1, sizes.s2, sizes.s3, sizes.s4, sizes.s5, sizes.s6, sizes.s7};
  const long f[8] = {from_strides.s0, from_strides.s1, from_strides.s2, from_strides.s3,
                     from_strides.s4, from_strides.s5, from_strides.s6, from_strides.s7};
  const long t[8] = {to_strides.s0, to_strides.s1, to_strides.s2, to_strides.s3,
                     to_strides.s4, to_strides.s5, to_strides.s6, to_strides.s7};
  ulong rest = get_global_id(0);
  if (rest >= count) return;
  long a = (long)from_offset, b = (long)to_offset;
  for (int d = axes - 1; d > 0; --d) {
    const ulong index = rest % n[d];
    rest /= n[d];
    a += (long)index * f[d];
    b += (long)index * t[d];
  }
  to[b + (long)rest * t[0]] = from[a + (long)rest * f[0]];
}
)";

struct Axes {
  std::vector<std::int64_t> sizes, from, to;
};

// Without axes of size 1, and with neighbours joined that lie in rows on both sides.
Axes joined(const at::Tensor& to, const at::Tensor& from) {
  Axes axes;
  for (std::int64_t d = 0; d < to.dim(); ++d) {
    if (to.size(d) == 1) continue;
    const bool joins =
        !axes.sizes.empty() && axes.from.back() == from.stride(d) * from.size(d) && axes.to.back() == to.stride(d) * to.size(d);
    if (joins) {
      axes.sizes.back() *= to.size(d);
      axes.from.back() = from.stride(d);
      axes.to.back() = to.stride(d);
    } else {
      axes.sizes.push_back(to.size(d));
      axes.from.push_back(from.stride(d));
      axes.to.push_back(to.stride(d));
    }
  }
  if (axes.sizes.empty()) axes = {{1}, {1}, {1}};
  return axes;
}

const char* type_of_size(std::int64_t bytes) {
  return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : bytes == 8 ? "ulong" : "ulong2";
}

// Host memory that writes still read.
struct Pending {
  cl_event done;
  at::Tensor held;
};
struct PendingWrites {
  std::mutex mutex;
  std::deque<Pending> writes;
};
PendingWrites& pending() {
  static auto* all = new PendingWrites;
  return *all;
}

void drop_finished(std::deque<Pending>& writes) {
  while (!writes.empty()) {
    cl_int status = CL_QUEUED;
    cl::clGetEventInfo(writes.front().done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (status > CL_COMPLETE) return;
    cl::clReleaseEvent(writes.front().done);
    writes.pop_front();
  }
}

// Writes from memory that `held` keeps until the command has ended.
void write_held(const at::Tensor& to, const at::Tensor& held) {
  Device& d = device(to.device().index());
  const Place place = place_of(to);
  cl_event done = nullptr;
  check(cl::clEnqueueWriteBuffer(d.queue, place.memory, CL_FALSE, place.offset, held.nbytes(), held.const_data_ptr(), 0,
                                 nullptr, &done),
        "writing a tensor");
  check(cl::clFlush(d.queue), "writing a tensor");
  PendingWrites& all = pending();
  const std::lock_guard lock(all.mutex);
  drop_finished(all.writes);
  all.writes.push_back({done, held});
}

void copy_to_device(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  at::Tensor host = from.to(to.scalar_type()).expand_as(to).contiguous();
  // The caller may change his memory as soon as this returns, unless he said that he will not.
  const bool shared = host.storage().unsafeGetStorageImpl() == from.storage().unsafeGetStorageImpl();
  if (shared && !(non_blocking && is_pinned(host.const_data_ptr()))) host = host.clone();
  if (to.is_contiguous()) return write_held(to, host);
  at::Tensor rows = at::empty(to.sizes(), to.options());
  write_held(rows, host);
  copy_layout(to, rows);
}

void copy_on_device(const at::Tensor& to, const at::Tensor& from) {
  if (to.scalar_type() == from.scalar_type()) return copy_layout(to, from);
  copy_layout(to, convert(from, to.scalar_type()));
}

}  // namespace

cl_kernel kernel_of(Device& device, const char* source, const char* name, const std::string& options) {
  static auto* made = new std::map<std::tuple<Device*, std::string, std::string>, cl_kernel>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  cl_kernel& kernel = (*made)[{&device, name, options}];
  if (kernel) return kernel;
  cl_int code = CL_SUCCESS;
  cl_program program = cl::clCreateProgramWithSource(device.context, 1, &source, nullptr, &code);
  check(code, "making a program");
  if (cl::clBuildProgram(program, 1, &device.info.id, options.c_str(), nullptr, nullptr) != CL_SUCCESS) {
    std::size_t length = 0;
    cl::clGetProgramBuildInfo(program, device.info.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &length);
    std::string log(length, '\0');
    cl::clGetProgramBuildInfo(program, device.info.id, CL_PROGRAM_BUILD_LOG, length, log.data(), nullptr);
    TORCH_CHECK(false, "device ocl: the kernel ", name, " does not build on ", device.info.name, ":\n", log);
  }
  kernel = cl::clCreateKernel(program, name, &code);
  check(code, "making a kernel");
  cl::clReleaseProgram(program);
  return kernel;
}

void launch(Device& device, cl_kernel kernel, std::size_t items) {
  constexpr std::size_t kGroup = 64;
  const std::size_t global = (items + kGroup - 1) / kGroup * kGroup;
  check(cl::clEnqueueNDRangeKernel(device.queue, kernel, 1, nullptr, &global, &kGroup, 0, nullptr, nullptr),
        "launching a kernel");
  check(cl::clFlush(device.queue), "launching a kernel");
}

void copy_layout(const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() == 0) return;
  Device& d = device(to.device().index());
  const Place source = place_of(from), target = place_of(to);
  const bool same = source.memory == target.memory;
  if (same && source.offset == target.offset && to.strides() == from.strides()) return;
  const Axes axes = joined(to, from);
  const bool rows = axes.sizes.size() == 1 && (axes.sizes[0] == 1 || (axes.from[0] == 1 && axes.to[0] == 1));
  if (rows && !same) {
    check(cl::clEnqueueCopyBuffer(d.queue, source.memory, target.memory, source.offset, target.offset, to.nbytes(), 0, nullptr,
                                  nullptr),
          "copying a tensor");
    return;
  }
  // Parts of one storage may overlap: what is read must not have been written.
  if (same) {
    at::Tensor between = at::empty(from.sizes(), from.options());
    copy_layout(between, from);
    return copy_layout(to, between);
  }
  TORCH_CHECK(axes.sizes.size() <= kMostAxes, "device ocl: a copy between strided layouts has at most ", kMostAxes,
              " axes that do not join, found ", axes.sizes.size(), "; call contiguous() before");
  const auto element = static_cast<std::uint64_t>(to.element_size());
  const std::lock_guard lock(d.mutex);
  cl_kernel kernel = kernel_of(d, kStridedCopy, "strided_copy", std::string("-DT=") + type_of_size(to.element_size()));
  cl_ulong8 sizes{};
  cl_long8 from_strides{}, to_strides{};
  for (std::size_t i = 0; i < axes.sizes.size(); ++i) {
    sizes.s[i] = static_cast<cl_ulong>(axes.sizes[i]);
    from_strides.s[i] = axes.from[i];
    to_strides.s[i] = axes.to[i];
  }
  const cl_ulong source_offset = source.offset / element, target_offset = target.offset / element;
  const auto count = static_cast<cl_ulong>(to.numel());
  const auto rank = static_cast<cl_int>(axes.sizes.size());
  const std::pair<std::size_t, const void*> arguments[] = {{sizeof(cl_mem), &source.memory},
                                                           {sizeof(cl_mem), &target.memory},
                                                           {sizeof source_offset, &source_offset},
                                                           {sizeof target_offset, &target_offset},
                                                           {sizeof rank, &rank},
                                                           {sizeof sizes, &sizes},
                                                           {sizeof from_strides, &from_strides},
                                                           {sizeof to_strides, &to_strides},
                                                           {sizeof count, &count}};
  for (cl_uint i = 0; i < std::size(arguments); ++i)
    check(cl::clSetKernelArg(kernel, i, arguments[i].first, arguments[i].second), "setting an argument of a copy");
  launch(d, kernel, count);
}

at::Tensor in_rows(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  at::Tensor rows = at::empty(tensor.sizes(), tensor.options().memory_format(c10::MemoryFormat::Contiguous));
  copy_layout(rows, tensor);
  return rows;
}

void write(const at::Tensor& to, const void* host, std::size_t bytes) {
  at::Tensor held = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
  std::memcpy(held.data_ptr(), host, bytes);
  write_held(to, held);
}

void read(const at::Tensor& from, void* host, std::size_t bytes) {
  if (bytes == 0) return;
  Device& d = device(from.device().index());
  const Place place = place_of(from);
  check(cl::clEnqueueReadBuffer(d.queue, place.memory, CL_TRUE, place.offset, bytes, host, 0, nullptr, nullptr),
        "reading a tensor");
}

at::Tensor to_cpu(const at::Tensor& tensor) {
  at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  const at::Tensor rows = in_rows(tensor);
  read(rows, host.data_ptr(), rows.nbytes());
  return host;
}

// to.copy_(from): one of them, or both, on the device.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  // Conjugates and negatives are views that a flag marks: the flags of both alike, bytes are copied.
  if (from.is_conj() != to.is_conj()) {
    const at::Tensor plain = to.is_conj() ? at::_conj(to) : to;
    copy_from(from.is_conj() ? at::_conj(from) : from, plain, non_blocking);
    at::conj_physical_out(const_cast<at::Tensor&>(plain), plain.clone());
    return to;
  }
  if (from.is_neg() != to.is_neg()) {
    at::Tensor plain = to.is_neg() ? at::_neg_view(to) : to;
    copy_from(from.is_neg() ? at::_neg_view(from) : from, plain, non_blocking);
    plain.neg_();
    return to;
  }
  const at::Tensor source = from.sizes() == to.sizes() ? from : from.expand_as(to);
  if (source.is_cpu()) {
    copy_to_device(to, source, non_blocking);
  } else if (to.is_cpu()) {
    to.copy_(to_cpu(source));
  } else if (source.device() == to.device()) {
    copy_on_device(to, source);
  } else {
    copy_to_device(to, to_cpu(source), false);
  }
  return to;
}

TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::native::resize_output(to, from.sizes());
  return copy_from(from, to, false);
}

}  // namespace oclc::torch_device
