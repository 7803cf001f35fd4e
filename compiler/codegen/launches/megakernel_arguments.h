// What kernels of several parts have in common: their pointers, constants that are one argument, their signature.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/launches/equal_constants.h"
#include "compiler/codegen/launches/megakernel.h"

namespace oclc {

// Kernels are generated under this name, so that those with the same text can be told.
constexpr std::string_view kPartName = "PART_NAME";

std::string replaced(std::string text, std::string_view what, std::string_view by);

class MegakernelArguments {
 public:
  MegakernelArguments(std::string name, const Schedule& schedule, const Target& target)
      : name_(std::move(name)), schedule_(schedule), target_(target) {}

 protected:
  static constexpr int kProgress = MegakernelCode::Argument::kProgress, kJoined = MegakernelCode::Argument::kJoined;

  const std::string& pointer_name(int buffer, bool written);
  // C text of where a constant lies among those that are one argument; empty if it is an argument itself.
  std::string joined_at(int buffer);
  // Takes what a kernel packed, unless it is there already, and says which buffers hold it, as MegakernelCode::Argument numbers
  // them.
  std::vector<int> take_packed(std::vector<Buffer>& packed);
  // Takes a ragged group's table: the name of its argument.
  std::string add_table(MemberTable table);
  // Parameters of the kernel; fills `moves_` and what `out_` says of its arguments.
  std::string signature();
  // Text that a program which some parts are built in alone has if it holds one of these, and the macros that say which it
  // holds, see package/plan.fbs.
  std::string where_wanted(const std::set<std::size_t>& parts, const std::string& text) const;
  std::string macros_of_parts() const;

  const std::string name_;
  const Schedule& schedule_;
  const Target& target_;
  MegakernelCode out_;
  std::set<std::string> symbols_;
  std::string moves_;  // of pointers by their offsets

 private:
  struct Pointer {
    std::string name;
    DType dtype = DType::f32;
    bool written = false;
  };

  std::map<int, Pointer> pointers_;     // by buffer
  std::vector<int> order_;              // of the pointers in the signature
  std::map<int, std::int64_t> joined_;  // offset by buffer
  EqualConstants constants_;
};

}  // namespace oclc
