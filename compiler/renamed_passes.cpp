#include "compiler/renamed_passes.h"

namespace oclc {
namespace {

struct RenamedPass {
  std::string_view before, now;
};

constexpr RenamedPass kRenamedPasses[] = {
    {"chains", "fuse_in_work_group"},      {"images", "fuse_over_batch"},
    {"join_pointwise", "fuse_pointwise"},  {"join_rows", "inline_row_statistics"},
    {"keep_planes", "keep_nchw"},          {"loops_apart", "parallel_loops"},
    {"multiply_halves", "strassen"},       {"one_memory", "merge_arguments"},
    {"pack_right_operands", "pack_b"},     {"persistent", "loop_kernel"},
    {"read_through", "forward_copies"},    {"resident", "megakernel"},
    {"short_products", "small_gemm"},      {"shorten_weights", "quantize_weights"},
    {"side_by_side", "horizontal_fusion"}, {"split_sums", "split_k"},
    {"stripes", "fuse_row_tiles"},         {"turn_weights", "transpose_weights"},
};

}  // namespace

std::string_view current_pass_name(std::string_view name) {
  for (const RenamedPass& pass : kRenamedPasses)
    if (pass.before == name) return pass.now;
  return name;
}

std::vector<std::string> current_pass_names(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.emplace_back(current_pass_name(name));
  return out;
}

}  // namespace oclc
