// The checks of verify_metadata, one plan's at a time: names, expressions and programs in verify.cpp, buffers in
// verify_buffers.cpp, entry points and their steps in verify_steps.cpp.
#pragma once
#include <bitset>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/package/verify/verify.h"

namespace oclc::package {

class PlanVerifier {
 public:
  PlanVerifier(const plan::Plan& plan, std::uint64_t metadata_bytes, std::uint64_t constant_bytes)
      : plan_(plan), constant_bytes_(constant_bytes), metadata_bytes_(metadata_bytes) {}

  // Throws Error (invalid) naming what breaks a rule.
  void run();

 private:
  enum class Scope { constant, symbolic, looping };

  template <class T>
  static std::uint32_t count(const flatbuffers::Vector<T>* list) {
    return list ? list->size() : 0;
  }
  static std::string_view text(const flatbuffers::String* string) {
    return string ? std::string_view(string->data(), string->size()) : std::string_view();
  }
  [[noreturn]] static void reject(const std::string& where, const std::string& what);
  static bool is_identifier(std::string_view name);
  static std::string number(std::int64_t value) { return std::to_string(value); }

  // Counts bytes of a text or expression that something refers to; see kMaxRepetition.
  void refer(std::uint64_t bytes) const;
  void refer(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts) const;
  // Names appear in messages and in kernel builds: no NUL, bounded.
  void name(const std::string& where, const flatbuffers::String* value, bool required = true) const;
  void unique(const std::string& where, std::set<std::string_view>& seen, const flatbuffers::String* value) const;
  void dtype(const std::string& where, plan::DType value) const;
  // FlatBuffers verifies the alignment of a vector's length, not that of its elements.
  void aligned(const std::string& where, const flatbuffers::Vector<std::int64_t>* list) const;
  // `looping`: counters of the loops around may be used; `symbolic`: bound symbols; `constant`: none.
  void expr(const std::string& where, const plan::Expr* e, Scope scope, bool required = true) const;
  // Of a checked expression.
  static std::vector<std::int64_t> symbols_of(const plan::Expr& e);
  void use_symbol(const std::string& where, std::int64_t index, Scope scope) const;
  std::int64_t constant_value(const std::string& where, const plan::Expr* e) const;
  void symbols();
  void assumptions() const;
  void programs() const;
  // Which open symbols a symbol waits for; those before it are noted.
  void note_open(std::uint32_t index);
  // Makes a symbol known, until the list is cut to what it was.
  void know(int symbol);
  void forget_from(std::size_t known);
  // Schedule indices that a launch takes.
  static int parts_of(const plan::Launch& l);
  // Launches, their parts and GEMMs of each entry, numbered depth first: what `first` and `last` of a buffer count.
  void schedule_sizes();
  std::int64_t leaves(const flatbuffers::Vector<flatbuffers::Offset<plan::Step>>* steps, std::uint32_t depth) const;
  std::string buffer_name(std::int64_t index) const;
  void buffers();
  void constant_slice(const std::string& where, const plan::Buffer& buffer) const;
  void arena_buffer(const std::string& where, const plan::Buffer& buffer) const;
  void pieces(const std::string& where, const plan::Buffer& buffer) const;
  // Follows each chain once; a chain longer than the list of buffers is a cycle. Lives of a storage are merged.
  void alias_chains();
  void binding(const std::string& where, const plan::Binding& b, plan::BufferKind kind, std::set<int>& used);
  void shape(const std::string& where, const flatbuffers::Vector<flatbuffers::Offset<plan::Expr>>* dims,
             Scope scope = Scope::symbolic) const;
  void entry(std::uint32_t index);
  void steps(const std::string& entry_name, const flatbuffers::Vector<flatbuffers::Offset<plan::Step>>* list);
  void loop(const std::string& where, const std::string& entry_name, const plan::Loop& l);
  // It is done with the step before it. What it binds may be used by all that follows.
  void read(const std::string& where, const plan::Read& r);
  void host(const std::string& where, const plan::Host& h) const;
  void launch(const std::string& where, const plan::Launch& l);
  // Moves on to the next step.
  void part(const std::string& where, const plan::Part& p);
  void costs(const std::string& what, const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* nodes,
             const plan::Expr* flops, const plan::Expr* bytes) const;
  void arg(const std::string& where, const plan::Arg* a) const;
  void rows_arg(const std::string& where, const plan::Arg& a) const;
  bool size_is_known(const plan::Expr* size) const;
  void buffer_arg(const std::string& where, const plan::Arg& a) const;
  void buffer_use(const std::string& where, std::int64_t index, bool writes) const;
  // `firsts`: by kind of buffer, the argument before that passes its memory object, or null.
  void shared_arg(const std::string& where, const plan::Arg& a, std::span<const plan::Arg* const> firsts) const;
  bool has_open_size(const plan::Expr* size) const;
  void gemm(const std::string& where, const plan::BlasGemm& g) const;
  void variables() const;
  // The device class and what is said of the model.
  void facts() const;

  const plan::Plan& plan_;
  std::uint64_t constant_bytes_;
  std::vector<std::int64_t> sizes_;  // of each entry's schedule
  std::vector<std::int64_t> root_;   // of each buffer: the end of its alias chain
  std::vector<int> first_, last_;    // of each root: its merged life
  std::set<std::string_view> entry_names_;
  std::set<int> bound_;  // buffers bound by the entry being checked
  // Open symbols are numbered; of each symbol, by the row of `needs_` that it has: those it waits for. Row 0 is empty.
  using OpenSymbols = std::bitset<kMaxOpenSymbols>;
  std::vector<OpenSymbols> needs_ = std::vector<OpenSymbols>(1);
  std::vector<std::uint32_t> row_;
  std::vector<int> open_number_;  // or -1
  std::uint32_t open_count_ = 0;
  OpenSymbols open_known_;
  std::vector<int> counters_;         // of the loops around the step being checked, and what was read before it
  std::vector<std::uint32_t> known_;  // how often each symbol is among them
  std::vector<std::uint64_t> use_;    // of each buffer by the launch being checked: twice its number, and 1 if it is written
  std::uint64_t launch_ = 0;          // number of that launch, from 1 on
  std::uint64_t metadata_bytes_;
  mutable std::uint64_t referred_ = 0;
  int entry_ = -1;
  int step_ = 0;
  int steps_ = 1;  // of the launch being checked
};

}  // namespace oclc::package
