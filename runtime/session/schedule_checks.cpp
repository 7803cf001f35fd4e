// What a launch says against the device, the kernel and the buffers.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/device/quirks.h"
#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/limits.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/schedule.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// Of a kernel's parameter; empty where the driver does not tell.
std::string type_of_parameter(cl_kernel kernel, cl_uint index) {
  std::size_t bytes = 0;
  if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string name(bytes, '\0');
  if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, bytes, name.data(), nullptr) != CL_SUCCESS) return "";
  name.resize(std::min(name.find('\0'), name.size()));
  return name;
}

std::string_view space_name(cl_kernel_arg_address_qualifier space) {
  switch (space) {
    case CL_KERNEL_ARG_ADDRESS_GLOBAL:
      return "global";
    case CL_KERNEL_ARG_ADDRESS_LOCAL:
      return "local";
    case CL_KERNEL_ARG_ADDRESS_CONSTANT:
      return "constant";
    default:
      return "private";
  }
}

// Nothing where the driver does not tell.
std::optional<cl_kernel_arg_address_qualifier> space_of(cl_kernel kernel, cl_uint index) {
  cl_kernel_arg_address_qualifier space = 0;
  if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, nullptr) != CL_SUCCESS)
    return std::nullopt;
  return space;
}

// Of what a pointer of this type points to, or of one of its components; 0 if the type is not one of OpenCL's numbers.
std::size_t pointee_bytes(std::string_view type) {
  constexpr std::pair<std::string_view, std::size_t> kTypes[] = {
      {"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},   {"int", 4},
      {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"double", 8},
  };
  const std::string_view number = type.substr(0, type.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  for (const auto& [name, bytes] : kTypes)
    if (name == number) return bytes;
  return 0;
}

}  // namespace

// A plan for a device with more of it is refused here, where a kernel can be named: drivers do when it is enqueued.
void Schedule::check_local_memory(const Leaf& leaf) const {
  if (has(context_.quirks(), Quirk::understates_local_memory)) return;
  const oclc_device_info& facts = context_.facts();
  cl_ulong wanted = 0;
  if (clGetKernelWorkGroupInfo(leaf.kernel.get(), context_.device(), CL_KERNEL_LOCAL_MEM_SIZE, sizeof wanted, &wanted,
                               nullptr) != CL_SUCCESS)
    return;
  if (wanted > facts.local_bytes)
    throw Failure(OCLC_E_UNSUPPORTED, loaded_.package().name() + ": kernel '" + leaf.name + "' wants " +
                                          std::to_string(wanted) + " bytes of local memory, device '" + facts.name + "' has " +
                                          std::to_string(facts.local_bytes) + "; compile the model for it: oclc --device");
}

void Schedule::check_limits(const Leaf& leaf) const {
  const oclc_device_info& facts = context_.facts();
  const auto refuse = [&](const std::string& what, std::uint64_t wanted, std::uint64_t found) {
    throw Failure(OCLC_E_UNSUPPORTED, leaf.described() + " wants " + what + " " + std::to_string(wanted) + ", device '" +
                                          facts.name + "' allows " + std::to_string(found) +
                                          "; the plan was compiled for target '" +
                                          (loaded_.plan().target() ? loaded_.plan().target()->str() : "") +
                                          "', compile it for this device: oclc --device");
  };
  const std::size_t group = leaf.local[0] * leaf.local[1] * leaf.local[2];
  if (group > facts.max_work_group_size) refuse("work-groups of size", group, facts.max_work_group_size);
  for (cl_uint d = 0; d < leaf.dims; ++d)
    if (leaf.local[d] > facts.max_work_item_sizes[d])
      refuse("a local size in dimension " + std::to_string(d) + " of", leaf.local[d], facts.max_work_item_sizes[d]);
  // A kernel compiled for a size runs with it, even where the driver (NVIDIA's, of programs made from binaries) states a
  // smaller limit.
  const cl_device_id device = context_.device();
  std::size_t limit = 0, compiled[3] = {};
  if (clGetKernelWorkGroupInfo(leaf.kernel.get(), device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof compiled, compiled,
                               nullptr) == CL_SUCCESS &&
      compiled[0] * compiled[1] * compiled[2] == group)
    return;
  if (clGetKernelWorkGroupInfo(leaf.kernel.get(), device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit, nullptr) ==
          CL_SUCCESS &&
      limit > 0 && group > limit)
    refuse("work-groups of size", group, limit);
}

void Schedule::reject(const std::string& what) const {
  throw Failure(OCLC_E_PLAN, loaded_.package().name() + ": invalid plan: " + what);
}

void Schedule::check_scalar(const Leaf& leaf, cl_kernel kernel, cl_uint index, std::string_view wanted) const {
  const auto space = space_of(kernel, index);
  if (!space) return;
  const std::string found = type_of_parameter(kernel, index);
  if (*space != CL_KERNEL_ARG_ADDRESS_PRIVATE || (!found.empty() && found != wanted))
    reject(leaf.described() + " takes " + std::string(space_name(*space)) + " '" + found + "' as argument " +
           std::to_string(index) + ", the plan gives '" + std::string(wanted) + "'");
}

void Schedule::check_pointer(const Leaf& leaf, cl_kernel kernel, const Leaf::Slot& slot) const {
  const auto space = space_of(kernel, slot.index);
  if (!space) return;
  const bool local = slot.arg->kind() == fb::ArgKind::local;
  const bool fits = local ? *space == CL_KERNEL_ARG_ADDRESS_LOCAL
                          : *space == CL_KERNEL_ARG_ADDRESS_GLOBAL || *space == CL_KERNEL_ARG_ADDRESS_CONSTANT;
  const std::string found = type_of_parameter(kernel, slot.index);
  if (!fits || (!found.empty() && !found.ends_with('*')))
    reject(leaf.described() + " takes " + std::string(space_name(*space)) + " '" + found + "' as argument " +
           std::to_string(slot.index) + ", the plan gives " + (local ? "local memory" : "a buffer"));
  if (local) return;
  if (slot.arg->kind() == fb::ArgKind::rows) {
    if (!found.empty() && found != "long*")
      reject(leaf.described() + " takes '" + found + "' as argument " + std::to_string(slot.index) +
             ", the plan gives rows of long");
    return;
  }
  const fb::DType dtype = loaded_.plan().buffers()->Get(static_cast<std::uint32_t>(slot.arg->buffer()))->dtype();
  // Offsets count elements of the buffer: of larger ones a kernel would begin behind them. It may see bytes in any.
  if (pointee_bytes(found) > package::dtype_bytes(dtype))
    reject(leaf.described() + " takes '" + found + "' as argument " + std::to_string(slot.index) + ", the plan gives buffer " +
           std::to_string(slot.arg->buffer()) + " of " + fb::EnumNameDType(dtype));
}

void Schedule::check_signature(const Leaf& leaf, cl_kernel kernel) const {
  cl_uint expected = 0;
  check_cl(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof expected, &expected, nullptr), "asking " + leaf.described());
  if (expected != leaf.arguments)
    reject(leaf.described() + " has " + std::to_string(expected) + " arguments, the plan gives " +
           std::to_string(leaf.arguments));
  for (const Leaf::Slot& slot : leaf.slots) {
    switch (slot.arg->kind()) {
      case fb::ArgKind::buffer:
        if (slot.object < 0) check_pointer(leaf, kernel, slot);
        check_scalar(leaf, kernel, slot.index + (slot.object < 0 ? 1 : 0), "long");
        break;
      case fb::ArgKind::local:
      case fb::ArgKind::rows:
        check_pointer(leaf, kernel, slot);
        break;
      case fb::ArgKind::int32:
        check_scalar(leaf, kernel, slot.index, "int");
        break;
      case fb::ArgKind::int64:
        check_scalar(leaf, kernel, slot.index, "long");
        break;
    }
  }
  for (cl_uint i = 0; leaf.part_index > 0 && i < 2; ++i) check_scalar(leaf, kernel, leaf.part_index + i, "int");
}

void Schedule::check_items(const Leaf& leaf) const {
  unsigned __int128 items = 1;
  for (cl_uint d = 0; d < leaf.dims; ++d) items *= leaf.global[d];
  if (items <= package::kFreeItems) return;
  std::uint64_t bytes = 0;
  for (const Leaf::Slot& slot : leaf.slots)
    each_buffer(*slot.arg, [&](std::uint32_t buffer, bool) { bytes += places_[buffer].bytes; });
  if (items / package::kMaxItemsPerByte <= bytes) return;
  std::string sizes;
  for (cl_uint d = 0; d < leaf.dims; ++d) sizes += (d > 0 ? " x " : "") + std::to_string(leaf.global[d]);
  reject(leaf.described() + " has " + sizes + " work-items for buffers of " + std::to_string(bytes) + " bytes");
}

void Schedule::check_matrix(const Leaf& leaf, const Leaf::Slot& slot, const Matrix& m) const {
  const std::uint64_t room = slot.place.bytes / sizeof(cl_float);
  const auto begin = static_cast<std::uint64_t>(slot.value) - slot.place.offset / sizeof(cl_float);
  const auto wide = [](std::uint64_t value) { return static_cast<unsigned __int128>(value); };
  if (m.rows == 0 || m.columns == 0) return;
  const unsigned __int128 one = wide(m.rows - 1) * m.row_stride + m.columns;
  const bool apart = !slot.arg->writes() || m.batches == 1 || wide(m.stride) >= one;
  if ((m.row_stride >= m.columns || m.rows == 1) && apart && begin + wide(m.batches - 1) * m.stride + one <= room) return;
  reject(leaf.described() + " takes from buffer " + std::to_string(slot.arg->buffer()) + " of " + std::to_string(room) +
         " elements " + std::to_string(m.batches) + " matrices of " + std::to_string(m.rows) + " x " +
         std::to_string(m.columns) + ", rows " + std::to_string(m.row_stride) + " and matrices " + std::to_string(m.stride) +
         " elements apart, from element " + std::to_string(begin) + " on");
}

}  // namespace oclc::runtime
