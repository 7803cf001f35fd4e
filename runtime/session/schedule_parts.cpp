// Launches of several parts: what a run enqueues of them, whole, in pieces or part by part.
#include <algorithm>
#include <map>

#include "runtime/failure.h"
#include "runtime/session/schedule.h"

namespace oclc::runtime {

namespace fb = oclc::plan;

bool Schedule::must_be_apart(const Leaf& leaf) const {
  const bool one_item = leaf.local[0] * leaf.local[1] * leaf.local[2] == 1;
  return one_item ? !items_see_ : !groups_see_;
}

bool Schedule::in_pieces(const Leaf& leaf) const {
  return pieces_of(*leaf.launch).front().own_kernels;
}

void Schedule::add_runs(Leaf& leaf) {
  const auto parts = static_cast<cl_int>(leaf.launch->parts() ? leaf.launch->parts()->size() : 0);
  const std::vector<Piece>& pieces = pieces_of(*leaf.launch);
  if (in_pieces(leaf)) {
    leaf.runs.push_back({leaf.kernel.get(), 0, parts, -1});  // which is never enqueued
    return;
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) {
      leaf.part_kernels.push_back(make_kernel(*leaf.launch, leaf.name, i));
      check_signature(leaf, leaf.part_kernels.back().get());
    }
    const cl_kernel kernel = i == 0 ? leaf.kernel.get() : leaf.part_kernels.back().get();
    const bool theirs = programs_->builders && programs_->builders->builds(pieces[i].unit);
    leaf.runs.push_back({kernel, pieces.size() > 1 ? static_cast<cl_int>(pieces[i].first) : 0,
                         pieces.size() > 1 ? static_cast<cl_int>(pieces[i].last) : parts,
                         theirs ? static_cast<int>(pieces[i].unit) : -1});
  }
}

void Schedule::add_parts(Leaf& leaf) {
  for (std::uint32_t i = 0; i < leaf.launch->parts()->size(); ++i) {
    const fb::Part& source = *leaf.launch->parts()->Get(i);
    Leaf part;
    part.part = &source;
    part.step = leaf.step + i;
    part.name = source.name() ? source.name()->str() : leaf.name;
    part.nodes = joined(source.nodes());
    leaf.looping = looping(source.flops()) || leaf.looping;
    leaf.looping = looping(source.bytes()) || leaf.looping;
    for (std::uint32_t k = 0; source.args() && k < source.args()->size(); ++k) {
      Leaf::Slot slot;
      slot.arg = source.args()->Get(k);
      part.slots.push_back(slot);
    }
    leaf.parts.push_back(std::move(part));
  }
  take_part_kernels(leaf);
}

void Schedule::take_part_kernels(Leaf& leaf) {
  std::map<std::string, cl_kernel> kernels;
  const std::vector<Piece>& pieces = pieces_of(*leaf.launch);
  for (std::size_t i = 0; i < leaf.parts.size(); ++i) {
    Leaf& part = leaf.parts[i];
    part.does = leaf.run_of(static_cast<cl_int>(i)).kernel;
    if (!leaf.apart || !part.part->kernel()) continue;
    const std::size_t number = kernels.size();
    cl_kernel& kernel = kernels[part.part->kernel()->str()];
    if (!kernel) {
      const auto held = [&](const Piece& piece) { return number < piece.last; };
      const std::size_t piece =
          in_pieces(leaf) ? static_cast<std::size_t>(std::find_if(pieces.begin(), pieces.end() - 1, held) - pieces.begin()) : 0;
      leaf.part_kernels.push_back(make_kernel(*leaf.launch, part.part->kernel()->str(), piece));
      check_signature(leaf, leaf.part_kernels.back().get());
      kernel = leaf.part_kernels.back().get();
    }
    part.does = kernel;
  }
  for (const Leaf::Run& run : leaf.runs) choose_parts(leaf, run.kernel, run.first, run.last);
}

void Schedule::choose_parts(const Leaf& leaf, cl_kernel kernel, cl_int first, cl_int last) {
  cl_int code = clSetKernelArg(kernel, leaf.part_index, sizeof first, &first);
  if (code == CL_SUCCESS) code = clSetKernelArg(kernel, leaf.part_index + 1, sizeof last, &last);
  check_cl(code, "choosing parts of " + leaf.described());
}

}  // namespace oclc::runtime
