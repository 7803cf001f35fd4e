// Which tensors of a program lie in each other's memory. A write into one of them changes the others.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "frontends/pt2/context.h"

namespace oclc::pt2 {

class Views {
 public:
  struct View {
    std::string of;                     // whose memory it lies in
    const ProgramNode* node = nullptr;  // that takes the view; null: the same tensor by another name
  };

  // Of an operator that was read: its results may be views of its operands.
  void note(const ProgramNode& node);
  // The result of an operator that writes into its operand.
  void note_same(const std::string& name, const std::string& of);

  const View* find(std::string_view name) const;  // null: of none
  std::string root(const std::string& name) const;
  // Whether something of its group is a view or a copy as strides are; the group is all that may share memory with it.
  bool uncertain(const std::string& name) const;
  std::set<std::string> group(const std::string& name) const;
  const Roots& roots() const { return roots_; }

 private:
  struct Group {
    std::set<std::string> names;
    bool uncertain = false;
  };

  void add(const std::string& name, const std::string& of, const ProgramNode* node);
  void join(const std::string& a, const std::string& b, bool uncertain);
  std::shared_ptr<Group> group_of(const std::string& name);

  std::map<std::string, View, std::less<>> views_;
  Roots roots_;
  std::map<std::string, std::shared_ptr<Group>, std::less<>> groups_;
};

template <class Visit>
void for_each_tensor(const Arg& arg, Visit&& visit) {
  if (arg.is(Arg::Kind::tensor)) visit(arg.name);
  for (const Arg& item : arg.items)
    if (item.is(Arg::Kind::tensor)) visit(item.name);
}

// What a view's operand is after `value` was written into the view `name` that the node took. Values are the program's, as they
// are now; the context is of the node that writes.
Value* written_into(AtenContext& c, const std::string& name, const ProgramNode& view, Value* value, Values& values);

}  // namespace oclc::pt2
