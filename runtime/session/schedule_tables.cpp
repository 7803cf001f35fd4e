// Rows of what a launch of several kernels of one text is told of each: numbers that are known when symbols are bound.
#include <string>

#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"
#include "runtime/session/schedule.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

}  // namespace

std::int64_t Schedule::number_of(const Leaf& leaf, const fb::Cell& cell, std::span<const std::int64_t> symbols) const {
  const std::int64_t value = evaluate(cell.value(), symbols, "a number of a table");
  if (cell.buffer() < 0) return value;
  const auto index = static_cast<std::uint32_t>(cell.buffer());
  const Place &place = places_[index], &base = places_[static_cast<std::size_t>(cell.base())];
  if (place.bytes == 0) return 0;  // nothing of it is used
  const auto element = static_cast<std::int64_t>(package::dtype_bytes(loaded_.plan().buffers()->Get(index)->dtype()));
  if (value < 0 || static_cast<std::uint64_t>(value) > place.bytes / static_cast<std::uint64_t>(element))
    reject(leaf.described() + " uses buffer " + std::to_string(index) + " from element " + std::to_string(value) +
           " on, which has " + std::to_string(place.bytes / static_cast<std::uint64_t>(element)));
  if (place.memory != base.memory)
    throw Failure(OCLC_E_UNSUPPORTED, leaf.described() + " wants buffers " + std::to_string(index) + " and " +
                                          std::to_string(cell.base()) + " in one memory object, device '" +
                                          context_.facts().name + "' allows at most " +
                                          std::to_string(context_.facts().max_alloc_bytes) +
                                          " bytes in one; compile the model with --disable=ragged_groups");
  return value + (static_cast<std::int64_t>(place.offset) - static_cast<std::int64_t>(base.offset)) / element;
}

bool Schedule::set_table(Leaf& leaf, Leaf::Slot& slot, std::span<const std::int64_t> symbols) {
  Leaf::Table& table = leaf.tables[static_cast<std::size_t>(slot.table)];
  std::vector<std::int64_t> numbers(slot.arg->numbers()->begin(), slot.arg->numbers()->end());
  for (std::uint32_t i = 0; i < count(slot.arg->cells()); ++i) {
    const fb::Cell& cell = *slot.arg->cells()->Get(i);
    std::int64_t value = number_of(leaf, cell, symbols);
    if (cell.plus() >= 0 && __builtin_add_overflow(value, numbers[static_cast<std::size_t>(cell.plus())], &value))
      reject(leaf.described() + " has a table whose numbers do not fit 64 bits");
    numbers[cell.at()] = value;
  }
  if (slot.set && numbers == table.numbers) return false;
  slot.set = true;
  table.numbers = std::move(numbers);
  // A new one, since launches that are enqueued read the old one.
  cl_int code = CL_SUCCESS;
  table.memory = ClMem(clCreateBuffer(context_.cl(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                      table.numbers.size() * sizeof(std::int64_t), table.numbers.data(), &code));
  check_cl(code, "a table of " + leaf.described());
  set_argument(leaf, slot, leaf.kernel.get());
  for (const ClKernel& kernel : leaf.part_kernels) set_argument(leaf, slot, kernel.get());
  return true;
}

}  // namespace oclc::runtime
