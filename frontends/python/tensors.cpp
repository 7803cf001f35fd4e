#include "frontends/python/tensors.h"

#include <nanobind/stl/string.h>

#include <cstdlib>
#include <new>
#include <optional>

namespace oclc::python {
namespace {

namespace nb = nanobind;
using Code = nb::dlpack::dtype_code;

constexpr std::size_t kAlignment = 4096, kPadding = 64;

nb::dlpack::dtype dlpack_type(Code code, int bits) {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
}

// The type of elements in numpy; bits as unsigned integers where it has none.
nb::dlpack::dtype array_type(oclc_dtype dtype) {
  const int bits = static_cast<int>(8 * oclc_dtype_bytes(dtype));
  switch (dtype) {
    case OCLC_F32:
    case OCLC_F64:
    case OCLC_F16:
      return dlpack_type(Code::Float, bits);
    case OCLC_I8:
    case OCLC_I16:
    case OCLC_I32:
    case OCLC_I64:
    case OCLC_I4:
    case OCLC_I2:
      return dlpack_type(Code::Int, bits);
    case OCLC_BOOL:
      return dlpack_type(Code::Bool, bits);
    default:
      return dlpack_type(Code::UInt, bits);
  }
}

std::optional<oclc_dtype> runtime_type(nb::dlpack::dtype type) {
  if (type.lanes != 1) return std::nullopt;
  switch (static_cast<Code>(type.code)) {
    case Code::Float:
      return type.bits == 32 ? OCLC_F32 : type.bits == 64 ? OCLC_F64 : type.bits == 16 ? std::optional(OCLC_F16) : std::nullopt;
    case Code::Bfloat:
      return OCLC_BF16;
    case Code::Int:
      return type.bits == 64   ? OCLC_I64
             : type.bits == 32 ? OCLC_I32
             : type.bits == 16 ? OCLC_I16
             : type.bits == 8  ? std::optional(OCLC_I8)
                               : std::nullopt;
    case Code::UInt:
      return type.bits == 64   ? OCLC_U64
             : type.bits == 32 ? OCLC_U32
             : type.bits == 16 ? OCLC_U16
             : type.bits == 8  ? std::optional(OCLC_U8)
                               : std::nullopt;
    case Code::Bool:
      return OCLC_BOOL;
    default:
      return std::nullopt;
  }
}

std::string type_text(nb::handle object) { return nb::cast<std::string>(object.type().attr("__name__")); }

[[noreturn]] void refuse(const Port& port, const std::string& text) {
  throw nb::type_error(("'" + port.name + "': " + text).c_str());
}

// What numpy has no name for: bits of the element in an unsigned integer of its size.
bool holds_bits(oclc_dtype wanted, nb::dlpack::dtype found) {
  const bool unnamed = wanted == OCLC_BF16 || wanted >= OCLC_F8E4M3FN;
  return unnamed && found == array_type(wanted);
}

template <class Array>
bool is_contiguous(const Array& array) {
  std::int64_t step = 1;
  for (std::size_t d = array.ndim(); d-- > 0;) {
    if (array.shape(d) == 0) return true;
    if (array.shape(d) != 1 && array.stride(d) != step) return false;
    step *= static_cast<std::int64_t>(array.shape(d));
  }
  return true;
}

template <class Array>
HeldTensor tensor_of(const Array& array, nb::handle object, const Port& port) {
  HeldTensor held;
  const std::optional<oclc_dtype> dtype = runtime_type(array.dtype());
  if (!dtype) refuse(port, "wanted elements of " + std::string(oclc_dtype_name(port.dtype)) + ", found a type that plans lack");
  held.tensor.dtype = holds_bits(port.dtype, array.dtype()) ? port.dtype : *dtype;
  held.owner = nb::borrow(object);
  std::uint64_t bytes = oclc_dtype_bytes(held.tensor.dtype);
  for (std::size_t d = 0; d < array.ndim(); ++d) {
    held.shape.push_back(static_cast<std::int64_t>(array.shape(d)));
    bytes *= array.shape(d);
  }
  held.tensor.bytes = bytes;
  if (array.device_type() == nb::device::opencl::value) {
    // The data pointer of OpenCL's arrays is the cl_mem; where the elements begin is told by the offset alone.
    held.tensor.buffer = static_cast<_cl_mem*>(const_cast<void*>(static_cast<const void*>(array.data())));
  } else {
    held.tensor.host = const_cast<void*>(static_cast<const void*>(array.data()));
  }
  return held;
}

template <class Array>
void check_place(const Array& array, const Port& port) {
  const int place = array.device_type();
  if (place != nb::device::cpu::value && place != nb::device::opencl::value)
    refuse(port, "wanted memory of the CPU or of OpenCL, found an array on another device; copy it to the CPU first");
}

HeldTensor strings(nb::handle object, const Port& port) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(object, nb::arg("dtype") = "O");
  HeldTensor held;
  for (const nb::handle d : nb::tuple(array.attr("shape"))) held.shape.push_back(nb::cast<std::int64_t>(d));
  for (const nb::handle text : nb::list(array.attr("ravel")().attr("tolist")())) {
    if (!nb::isinstance<nb::str>(text)) refuse(port, "wanted texts, found an element of type " + type_text(text));
    held.texts.push_back(nb::cast<std::string>(text));
  }
  for (const std::string& text : held.texts) held.text_pointers.push_back(text.c_str());
  held.tensor.dtype = OCLC_STRING;
  held.tensor.host = held.text_pointers.data();
  held.tensor.bytes = held.text_pointers.size() * sizeof(const char*);
  return held;
}

}  // namespace

const oclc_tensor* HeldTensor::get() {
  static constexpr std::int64_t kScalar = 0;
  tensor.rank = static_cast<std::uint32_t>(shape.size());
  tensor.shape = shape.empty() ? &kScalar : shape.data();
  return &tensor;
}

HeldTensor input_tensor(nb::handle object, const Port& port) {
  if (port.dtype == OCLC_STRING) return strings(object, port);
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array))
    refuse(port, "wanted an array (numpy, torch, anything with __dlpack__ or a buffer), found " + type_text(object));
  check_place(array, port);
  if (is_contiguous(array)) return tensor_of(array, object, port);
  if (array.device_type() != nb::device::cpu::value) refuse(port, "wanted a contiguous array, found a strided one of OpenCL");
  const bool torch = nb::hasattr(object, "contiguous");
  const nb::object copy = torch ? object.attr("contiguous")() : nb::module_::import_("numpy").attr("ascontiguousarray")(object);
  if (!nb::try_cast(copy, array)) refuse(port, "a copy in rows could not be made");
  HeldTensor held = tensor_of(array, copy, port);
  held.copied = true;
  return held;
}

HeldTensor output_tensor(nb::handle object, const Port& port) {
  nb::ndarray<> array;
  if (port.dtype == OCLC_STRING || !nb::try_cast(object, array))
    refuse(port, "wanted a writable array for the output, found " + type_text(object) +
                     (port.dtype == OCLC_STRING ? "; outputs of texts are always made anew" : ""));
  check_place(array, port);
  if (!is_contiguous(array))
    throw nb::value_error(("'" + port.name + "': wanted a contiguous array for the output, found a strided one").c_str());
  return tensor_of(array, object, port);
}

HeldTensor new_output(const Port& port, std::vector<std::int64_t> shape, std::uint64_t bytes) {
  HeldTensor held;
  held.shape = std::move(shape);
  held.tensor.dtype = port.dtype;
  held.tensor.bytes = bytes;
  void* memory = nullptr;
  const std::size_t room = (static_cast<std::size_t>(bytes) + kPadding) / kPadding * kPadding;
  if (::posix_memalign(&memory, kAlignment, room) != 0) throw std::bad_alloc();
  held.tensor.host = memory;
  held.owner = nb::capsule(memory, [](void* p) noexcept { std::free(p); });
  return held;
}

nb::object as_array(const HeldTensor& memory, const std::vector<std::int64_t>& shape) {
  if (memory.tensor.dtype == OCLC_STRING) {
    const auto* texts = static_cast<const char* const*>(memory.tensor.host);
    std::size_t count = 1;
    for (const std::int64_t d : shape) count *= static_cast<std::size_t>(d);
    nb::list list;
    for (std::size_t i = 0; i < count; ++i) list.append(nb::str(texts[i]));
    const nb::object numpy = nb::module_::import_("numpy");
    nb::list dims;
    for (const std::int64_t d : shape) dims.append(d);
    return numpy.attr("array")(list, nb::arg("dtype") = "O").attr("reshape")(nb::tuple(dims));
  }
  std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy>(memory.tensor.host, sizes.size(), sizes.data(), memory.owner, nullptr,
                                         array_type(memory.tensor.dtype)));
}

}  // namespace oclc::python
