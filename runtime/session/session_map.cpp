// Outputs that the caller reads where they lie.
#include <algorithm>

#include "runtime/failure.h"
#include "runtime/session/session.h"

namespace oclc::runtime {

void Session::check_ran(const Entry& e, const Port& p) const {
  if (e.dirty || !e.laid_out)
    throw Failure(OCLC_E_ARGUMENT,
                  p.label + ": entry point '" + e.name + "' was not run, or inputs or outputs were bound since");
}

void Session::check_unmapped(const Entry& e) const {
  for (const Port& p : e.ports)
    if (p.is_mapped)
      throw Failure(OCLC_E_ARGUMENT, p.label + " is mapped: unmap it before entry point '" + e.name +
                                         "' is prepared or runs again (oclc_session_unmap_output)");
}

std::span<const std::byte> Session::map_output(std::uint32_t index, const char* name) {
  Entry& e = entry(index);
  Port& p = port(e, OCLC_OUTPUT, name);
  context_->check_process();
  if (p.is_mapped) throw Failure(OCLC_E_ARGUMENT, p.label + " is mapped already");
  if (p.bound) throw Failure(OCLC_E_ARGUMENT, p.label + " is bound: read it where it is bound to");
  if (p.binding->dtype() == oclc::plan::DType::string_)
    throw Failure(OCLC_E_UNSUPPORTED, p.label + " holds strings, which are not mapped: use oclc_session_read_output");
  check_ran(e, p);
  const std::uint64_t bytes = found_bytes(e, p, e.found.empty() ? e.symbols : e.found);
  if (bytes > 0) {
    const Place& place = e.schedule->places()[static_cast<std::size_t>(p.binding->buffer())];
    cl_int code = CL_SUCCESS;
    p.mapped = clEnqueueMapBuffer(context_->queue(), place.memory, CL_TRUE, CL_MAP_READ, place.offset, bytes, 0, nullptr,
                                  nullptr, &code);
    check_cl(code, "mapping " + p.label);
    p.mapped_memory = ClMem::retain(place.memory);
  }
  p.is_mapped = true;
  return {static_cast<const std::byte*>(bytes > 0 ? p.mapped : nullptr), static_cast<std::size_t>(bytes)};
}

void Session::unmap_output(std::uint32_t index, const char* name) {
  Port& p = port(entry(index), OCLC_OUTPUT, name);
  if (!p.is_mapped) throw Failure(OCLC_E_ARGUMENT, p.label + " is not mapped");
  context_->check_process();
  if (p.mapped_memory)
    check_cl(clEnqueueUnmapMemObject(context_->queue(), p.mapped_memory.get(), p.mapped, 0, nullptr, nullptr),
             "unmapping " + p.label);
  p.mapped_memory.reset();
  p.mapped = nullptr;
  p.is_mapped = false;
}

}  // namespace oclc::runtime
