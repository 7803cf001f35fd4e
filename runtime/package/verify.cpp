#include "runtime/package/verify.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/package/arena.h"
#include "runtime/package/expr_code.h"
#include "runtime/package/verify_host.h"
#include "runtime/package/verify_variables.h"

namespace oclc::package {
namespace {

namespace fb = oclc::plan;

template <class T>
std::uint32_t count(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

std::string_view text(const flatbuffers::String* string) {
  return string ? std::string_view(string->data(), string->size()) : std::string_view();
}

[[noreturn]] void reject(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::invalid, where + ": " + what);
}

std::string number(std::int64_t value) { return std::to_string(value); }

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

class Verifier {
 public:
  Verifier(const fb::Plan& plan, std::uint64_t constant_bytes) : plan_(plan), constant_bytes_(constant_bytes) {}

  void run() {
    symbols();
    programs();
    verify_strings(plan_);
    schedule_sizes();
    buffers();
    alias_chains();
    for (std::uint32_t i = 0; i < count(plan_.entries()); ++i) entry(i);
    variables();
    for (std::uint32_t i = 0; i < count(plan_.extensions()); ++i)
      if (!is_identifier(text(plan_.extensions()->Get(i)))) reject("extension " + number(i), "wanted an identifier");
  }

 private:
  // Names appear in messages and in kernel builds: no NUL, bounded.
  void name(const std::string& where, const flatbuffers::String* value, bool required = true) const {
    const std::string_view v = text(value);
    if (required && v.empty()) reject(where, "has no name");
    if (v.size() > 65536) reject(where, "its name is longer than 65536 bytes");
    if (v.find('\0') != v.npos) reject(where, "its name contains a NUL");
  }

  void unique(const std::string& where, std::set<std::string_view>& seen, const flatbuffers::String* value) const {
    name(where, value);
    if (!seen.insert(text(value)).second) reject(where, "the name '" + std::string(text(value)) + "' is used twice");
  }

  void dtype(const std::string& where, fb::DType value) const {
    if (value > fb::DType::MAX) reject(where, "unknown element type " + number(static_cast<int>(value)));
  }

  // FlatBuffers verifies the alignment of a vector's length, not that of its elements.
  void aligned(const std::string& where, const flatbuffers::Vector<std::int64_t>* list) const {
    if (list && reinterpret_cast<std::uintptr_t>(list->data()) % alignof(std::int64_t) != 0)
      reject(where, "its numbers are not aligned");
  }

  enum class Scope { constant, symbolic, looping };

  // `looping`: counters of the loops around may be used; `symbolic`: bound symbols; `constant`: none.
  void expr(const std::string& where, const fb::Expr* e, Scope scope, bool required = true) const {
    if (!e || count(e->code()) == 0) {
      if (required) reject(where, "has no expression");
      return;
    }
    aligned(where, e->code());
    std::size_t depth = 0;
    const auto& code = *e->code();
    for (std::uint32_t i = 0; i < code.size(); ++i) {
      const std::int64_t op = code.Get(i);
      if (op == static_cast<std::int64_t>(ExprOp::constant) || op == static_cast<std::int64_t>(ExprOp::symbol)) {
        if (++i == code.size()) reject(where, "its expression ends within an operand");
        if (++depth > kExprStackDepth) reject(where, "its expression needs a stack deeper than " + number(kExprStackDepth));
        if (op == static_cast<std::int64_t>(ExprOp::symbol)) use_symbol(where, code.Get(i), scope);
      } else if (op >= static_cast<std::int64_t>(ExprOp::add) && op <= static_cast<std::int64_t>(ExprOp::max)) {
        if (depth < 2) reject(where, "its expression lacks an operand");
        --depth;
      } else {
        reject(where, "its expression has the unknown operation " + number(op));
      }
    }
    if (depth != 1) reject(where, "its expression leaves " + number(static_cast<std::int64_t>(depth)) + " values");
  }

  // Of a checked expression.
  static std::vector<std::int64_t> symbols_of(const fb::Expr& e) {
    std::vector<std::int64_t> found;
    for (std::uint32_t i = 0; i < e.code()->size(); ++i) {
      const std::int64_t op = e.code()->Get(i);
      if (op != static_cast<std::int64_t>(ExprOp::constant) && op != static_cast<std::int64_t>(ExprOp::symbol)) continue;
      ++i;
      if (op == static_cast<std::int64_t>(ExprOp::symbol)) found.push_back(e.code()->Get(i));
    }
    return found;
  }

  void use_symbol(const std::string& where, std::int64_t index, Scope scope) const {
    if (index < 0 || index >= count(plan_.symbols()))
      reject(where, "symbol " + number(index) + " of " + number(count(plan_.symbols())) + " symbols");
    const auto* symbol = plan_.symbols()->Get(static_cast<std::uint32_t>(index));
    if (scope == Scope::constant)
      reject(where, "its expression must be constant, found symbol '" + symbol->name()->str() + "'");
    if (!symbol->loop()) return;
    if (symbol->upper() && scope == Scope::symbolic) return;  // memory is laid out for the largest value
    for (const int counter : counters_)
      if (counter == index && scope == Scope::looping) return;
    reject(where, symbol->upper() ? "uses the symbol '" + symbol->name()->str() + "' before it is read"
                                  : "uses the loop counter '" + symbol->name()->str() + "' outside its loop");
  }

  std::int64_t constant_value(const std::string& where, const fb::Expr* e) const {
    expr(where, e, Scope::constant);
    const auto value = evaluate({e->code()->data(), e->code()->size()}, {});
    if (!value) reject(where, "its expression overflows or divides by zero");
    return *value;
  }

  void symbols() const {
    std::set<std::string_view> seen;
    for (std::uint32_t i = 0; i < count(plan_.symbols()); ++i) {
      const auto* symbol = plan_.symbols()->Get(i);
      const std::string where = "symbol " + number(i);
      unique(where, seen, symbol->name());
      if (symbol->lo() > symbol->hi() || symbol->lo() < 0)
        reject(where, "its range " + number(symbol->lo()) + " to " + number(symbol->hi()) + " is not one of dimensions");
      if (!symbol->upper()) continue;
      if (!symbol->loop()) reject(where, "has a largest value but is bound by the caller");
      expr(where + " largest value", symbol->upper(), Scope::symbolic);
      for (const std::int64_t used : symbols_of(*symbol->upper()))
        if (used >= static_cast<std::int64_t>(i)) reject(where, "its largest value uses a symbol that comes later");
    }
  }

  void programs() const {
    for (std::uint32_t i = 0; i < count(plan_.programs()); ++i) {
      const auto* program = plan_.programs()->Get(i);
      const std::string where = "program " + number(i);
      name(where, program->name());
      if (text(program->source()).empty()) reject(where, "has no source");
      if (text(program->source()).find('\0') != std::string_view::npos) reject(where, "its source contains a NUL");
      for (const char c : text(program->options()))
        if (c < ' ' || c > '~') reject(where, "its build options contain a control character");
    }
  }

  // Schedule indices that a launch takes.
  static int parts_of(const fb::Launch& l) { return std::max(1, static_cast<int>(count(l.parts()))); }

  // Launches, their parts and GEMMs of each entry, numbered depth first: what `first` and `last` of a buffer count.
  void schedule_sizes() {
    for (std::uint32_t i = 0; i < count(plan_.entries()); ++i) sizes_.push_back(leaves(plan_.entries()->Get(i)->steps(), 0));
  }

  std::int64_t leaves(const flatbuffers::Vector<flatbuffers::Offset<fb::Step>>* steps, std::uint32_t depth) const {
    if (depth > kMaxLoopDepth) reject("schedule", "loops are nested deeper than " + number(kMaxLoopDepth));
    std::int64_t total = 0;
    for (std::uint32_t i = 0; i < count(steps); ++i) {
      const auto* loop = steps->Get(i)->body_as_Loop();
      const auto* launch = steps->Get(i)->body_as_Launch();
      if (steps->Get(i)->body_as_Read()) continue;
      total += loop ? leaves(loop->body(), depth + 1) : launch ? parts_of(*launch) : 1;
    }
    return total;
  }

  std::string buffer_name(std::int64_t index) const {
    const auto* buffer = plan_.buffers()->Get(static_cast<std::uint32_t>(index));
    return "buffer " + number(index) + " '" + std::string(text(buffer->name())) + "'";
  }

  void buffers() const {
    for (std::uint32_t i = 0; i < count(plan_.buffers()); ++i) {
      const auto* buffer = plan_.buffers()->Get(i);
      name("buffer " + number(i), buffer->name(), false);
      const std::string where = buffer_name(i);
      dtype(where, buffer->dtype());
      if (buffer->kind() > fb::BufferKind::MAX) reject(where, "unknown kind " + number(static_cast<int>(buffer->kind())));
      expr(where + " size", buffer->bytes(), Scope::symbolic);
      if (buffer->kind() != fb::BufferKind::arena && buffer->alias() != -1) reject(where, "only arena buffers may be aliases");
      if (buffer->kind() != fb::BufferKind::arena && count(buffer->pieces()) > 0)
        reject(where, "only arena buffers have pieces");
      switch (buffer->kind()) {
        case fb::BufferKind::arena:
          arena_buffer(where, *buffer);
          break;
        case fb::BufferKind::constant:
          constant_slice(where, *buffer);
          break;
        case fb::BufferKind::state:
          if (buffer->has_initial())
            constant_slice(where, *buffer);
          else if (constant_value(where + " size", buffer->bytes()) < 0)
            reject(where, "its size is negative");
          break;
        default:
          break;
      }
    }
  }

  void constant_slice(const std::string& where, const fb::Buffer& buffer) const {
    const std::int64_t bytes = constant_value(where + " size", buffer.bytes());
    if (bytes < 0) reject(where, "its size is negative");
    const auto size = static_cast<std::uint64_t>(bytes);
    if (size > constant_bytes_ || buffer.constant_offset() > constant_bytes_ - size)
      reject(where, "its slice [" + std::to_string(buffer.constant_offset()) + ", +" + std::to_string(size) +
                        ") lies outside the constant section of " + std::to_string(constant_bytes_) + " bytes");
    if (buffer.constant_offset() % 64 != 0) reject(where, "its place in the constant section is not a multiple of 64");
  }

  void arena_buffer(const std::string& where, const fb::Buffer& buffer) const {
    if (buffer.entry() < 0 || static_cast<std::size_t>(buffer.entry()) >= sizes_.size())
      reject(where, "entry point " + number(buffer.entry()) + " of " + number(static_cast<std::int64_t>(sizes_.size())));
    const std::int64_t size = sizes_[static_cast<std::size_t>(buffer.entry())];
    if (buffer.first() < 0 || buffer.last() < buffer.first() || buffer.last() >= size)
      reject(where, "its life " + number(buffer.first()) + " to " + number(buffer.last()) + " is not within the schedule of " +
                        number(size) + " launches");
    pieces(where, buffer);
    if (buffer.alias() == -1) return;
    if (buffer.alias() < -1 || buffer.alias() >= static_cast<std::int64_t>(count(plan_.buffers())))
      reject(where, "is an alias of buffer " + number(buffer.alias()) + " of " + number(count(plan_.buffers())));
    const auto* target = plan_.buffers()->Get(static_cast<std::uint32_t>(buffer.alias()));
    if (target->kind() != fb::BufferKind::arena || target->entry() != buffer.entry())
      reject(where, "is an alias of " + buffer_name(buffer.alias()) + ", which is no arena buffer of the same entry point");
    if (count(target->pieces()) > 0)
      reject(where, "is an alias of " + buffer_name(buffer.alias()) + ", whose pieces live apart");
  }

  void pieces(const std::string& where, const fb::Buffer& buffer) const {
    if (count(buffer.pieces()) == 0) return;
    if (buffer.alias() >= 0) reject(where, "has pieces and is an alias");
    std::int64_t earliest = INT_MAX, before = -1;
    for (const fb::Piece* piece : *buffer.pieces()) {
      if (piece->offset() <= before || (before < 0 && piece->offset() != 0) ||
          piece->offset() % static_cast<std::int64_t>(kArenaAlignment) != 0)
        reject(where, "a piece at " + number(piece->offset()) + ", while offsets ascend from 0 in multiples of " +
                          number(static_cast<std::int64_t>(kArenaAlignment)));
      if (piece->first() < buffer.first() || piece->first() > buffer.last())
        reject(where, "a piece used from " + number(piece->first()) + " on, outside its life " + number(buffer.first()) +
                          " to " + number(buffer.last()));
      before = piece->offset();
      earliest = std::min(earliest, piece->first());
    }
    if (earliest != buffer.first())
      reject(where, "its first piece is used from " + number(earliest) + " on, itself from " + number(buffer.first()));
  }

  // Follows each chain once; a chain longer than the list of buffers is a cycle. Lives of a storage are merged.
  void alias_chains() {
    const std::uint32_t n = count(plan_.buffers());
    root_.assign(n, -1);
    first_.assign(n, INT_MAX);
    last_.assign(n, 0);
    for (std::uint32_t i = 0; i < n; ++i) {
      std::vector<std::uint32_t> path;
      std::int64_t at = i;
      while (root_[static_cast<std::size_t>(at)] < 0) {
        path.push_back(static_cast<std::uint32_t>(at));
        if (path.size() > n) reject(buffer_name(i), "its alias chain is a cycle");
        const int next = plan_.buffers()->Get(static_cast<std::uint32_t>(at))->alias();
        if (next < 0) break;
        at = next;
      }
      const std::int64_t root = root_[static_cast<std::size_t>(at)] < 0 ? at : root_[static_cast<std::size_t>(at)];
      for (const std::uint32_t p : path) root_[p] = root;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto* buffer = plan_.buffers()->Get(i);
      const auto root = static_cast<std::size_t>(root_[i]);
      first_[root] = std::min(first_[root], buffer->first());
      last_[root] = std::max(last_[root], buffer->last());
    }
  }

  void binding(const std::string& where, const fb::Binding& b, fb::BufferKind kind, std::set<int>& used) {
    dtype(where, b.dtype());
    if (b.buffer() < 0 || b.buffer() >= static_cast<std::int64_t>(count(plan_.buffers())))
      reject(where, "buffer " + number(b.buffer()) + " of " + number(count(plan_.buffers())));
    if (plan_.buffers()->Get(static_cast<std::uint32_t>(b.buffer()))->kind() != kind)
      reject(where, buffer_name(b.buffer()) + " is not of kind " + fb::EnumNameBufferKind(kind));
    if (!used.insert(b.buffer()).second) reject(where, buffer_name(b.buffer()) + " is bound twice");
    if (b.limit() < 0) reject(where, "the limit of its values is " + number(b.limit()));
    shape(where, b.shape());
  }

  void shape(const std::string& where, const flatbuffers::Vector<flatbuffers::Offset<fb::Expr>>* dims,
             Scope scope = Scope::symbolic) const {
    if (count(dims) > kMaxRank) reject(where, "rank " + number(count(dims)) + " is above " + number(kMaxRank));
    for (std::uint32_t d = 0; d < count(dims); ++d) expr(where + " dimension " + number(d), dims->Get(d), scope);
  }

  void entry(std::uint32_t index) {
    const auto* e = plan_.entries()->Get(index);
    unique("entry point " + number(index), entry_names_, e->name());
    const std::string where = "entry point '" + e->name()->str() + "'";
    bound_.clear();
    std::set<std::string_view> inputs;
    std::set<std::string_view> outputs;
    for (std::uint32_t i = 0; i < count(e->inputs()); ++i) {
      unique(where + " input " + number(i), inputs, e->inputs()->Get(i)->name());
      binding(where + " input " + number(i), *e->inputs()->Get(i), fb::BufferKind::input, bound_);
    }
    for (std::uint32_t i = 0; i < count(e->outputs()); ++i) {
      unique(where + " output " + number(i), outputs, e->outputs()->Get(i)->name());
      binding(where + " output " + number(i), *e->outputs()->Get(i), fb::BufferKind::output, bound_);
    }
    entry_ = static_cast<int>(index);
    step_ = 0;
    steps(where, e->steps());
  }

  void steps(const std::string& entry_name, const flatbuffers::Vector<flatbuffers::Offset<fb::Step>>* list) {
    for (std::uint32_t i = 0; i < count(list); ++i) {
      const auto* step = list->Get(i);
      const std::string where = entry_name + " step " + number(step_);
      if (step->body_type() != fb::StepBody::NONE && !step->body()) reject(where, "is empty");
      switch (step->body_type()) {
        case fb::StepBody::Launch:
          launch(where, *step->body_as_Launch());
          step_ += parts_of(*step->body_as_Launch());
          break;
        case fb::StepBody::BlasGemm:
          gemm(where, *step->body_as_BlasGemm());
          ++step_;
          break;
        case fb::StepBody::Loop:
          loop(where, entry_name, *step->body_as_Loop());
          break;
        case fb::StepBody::Read:
          read(where, *step->body_as_Read());
          break;
        case fb::StepBody::Host:
          host(where, *step->body_as_Host());
          ++step_;
          break;
        default:
          reject(where, "unknown kind of step " + number(static_cast<int>(step->body_type())));
      }
    }
  }

  void loop(const std::string& where, const std::string& entry_name, const fb::Loop& l) {
    expr(where + " trip count", l.trip(), Scope::looping);
    if (l.counter() < 0 || l.counter() >= static_cast<std::int64_t>(count(plan_.symbols())))
      reject(where, "loop counter " + number(l.counter()) + " of " + number(count(plan_.symbols())) + " symbols");
    if (!plan_.symbols()->Get(static_cast<std::uint32_t>(l.counter()))->loop())
      reject(where, "its loop counter is not a loop symbol");
    for (const int counter : counters_)
      if (counter == l.counter()) reject(where, "two nested loops use one counter");
    if (l.condition() != -1) {
      const auto* first = count(l.body()) == 0 ? nullptr : l.body()->Get(0)->body_as_Read();
      if (!first || count(first->dims()) != 1 || first->dims()->Get(0) != l.condition())
        reject(where, "its condition is not what the first step of its body reads");
    }
    counters_.push_back(l.counter());
    const std::size_t known = counters_.size() - 1;
    steps(entry_name, l.body());
    counters_.resize(known);
  }

  // It is done with the step before it. What it binds may be used by all that follows.
  void read(const std::string& where, const fb::Read& r) {
    if (!r.from() || r.from()->kind() != fb::ArgKind::buffer) reject(where, "reads from no buffer");
    const int next = std::exchange(step_, std::max(step_ - 1, 0));
    steps_ = 1;
    arg(where, r.from());
    step_ = next;
    const auto* buffer = plan_.buffers()->Get(static_cast<std::uint32_t>(r.from()->buffer()));
    if (buffer->dtype() != fb::DType::i32 && buffer->dtype() != fb::DType::i64)
      reject(where, "reads dimensions from " + buffer_name(r.from()->buffer()) + ", which holds no i32 or i64");
    if (count(r.dims()) == 0 || count(r.dims()) > kMaxReadDims)
      reject(where, "reads " + number(count(r.dims())) + " dimensions, allowed are 1 to " + number(kMaxReadDims));
    for (const int dim : *r.dims()) {
      if (dim < 0 || dim >= static_cast<std::int64_t>(count(plan_.symbols())) ||
          !plan_.symbols()->Get(static_cast<std::uint32_t>(dim))->upper())
        reject(where, "symbol " + number(dim) + " is none that can be read");
      counters_.push_back(dim);
    }
  }

  void host(const std::string& where, const fb::Host& h) const {
    verify_host_settings(where, plan_, h);
    for (const auto& [list, writes] : {std::pair(h.inputs(), false), std::pair(h.outputs(), true)})
      for (std::uint32_t i = 0; i < count(list); ++i) {
        const std::string what = where + (writes ? " output " : " input ") + number(i);
        arg(what, list->Get(i)->at());
        if (list->Get(i)->at()->writes() != writes) reject(what, writes ? "is not marked as written" : "is marked as written");
        shape(what, list->Get(i)->shape(), Scope::looping);
      }
    for (std::uint32_t i = 0; i < count(h.nodes()); ++i) name(where + " node " + number(i), h.nodes()->Get(i), false);
  }

  void launch(const std::string& where, const fb::Launch& l) {
    if (!is_identifier(text(l.name()))) reject(where, "its kernel name is not an identifier");
    const std::string what = where + " '" + l.name()->str() + "'";
    if (l.program() < 0 || l.program() >= static_cast<std::int64_t>(count(plan_.programs())))
      reject(what, "program " + number(l.program()) + " of " + number(count(plan_.programs())));
    if (count(l.args()) > kMaxArgs) reject(what, "has more than " + number(kMaxArgs) + " arguments");
    steps_ = parts_of(l);
    for (std::uint32_t i = 0; i < count(l.args()); ++i) arg(what + " argument " + number(i), l.args()->Get(i));
    steps_ = 1;
    for (std::uint32_t i = 0; i < count(l.parts()); ++i) part(what + " part " + number(i), l, *l.parts()->Get(i));
    step_ -= static_cast<int>(count(l.parts()));
    const std::uint32_t dims = count(l.global());
    if (dims < 1 || dims > 3 || count(l.local()) != dims)
      reject(what, "wanted 1 to 3 dimensions of equal number in `global` and `local`, found " + number(dims) + " and " +
                       number(count(l.local())));
    std::uint64_t group = 1;
    for (std::uint32_t d = 0; d < dims; ++d) {
      expr(what + " global size " + number(d), l.global()->Get(d), Scope::looping);
      const std::uint32_t local = l.local()->Get(d);
      if (local == 0 || local > kMaxWorkGroupSize) reject(what, "local size " + number(local) + " in dimension " + number(d));
      group *= local;
      if (group > kMaxWorkGroupSize) reject(what, "its work-group is larger than " + number(kMaxWorkGroupSize) + " work-items");
    }
    costs(what, l.nodes(), l.flops(), l.bytes());
  }

  // Moves on to the next step.
  void part(const std::string& where, const fb::Launch& l, const fb::Part& p) {
    name(where, p.name(), false);
    costs(where, p.nodes(), p.flops(), p.bytes());
    for (std::uint32_t i = 0; i < count(p.args()); ++i) {
      const fb::Arg* a = p.args()->Get(i);
      const std::string what = where + " argument " + number(i);
      arg(what, a);
      if (a->kind() != fb::ArgKind::buffer) reject(what, "is not a buffer");
      bool known = false;
      for (std::uint32_t k = 0; k < count(l.args()); ++k) {
        const fb::Arg* whole = l.args()->Get(k);
        known =
            known || (whole->kind() == fb::ArgKind::buffer && whole->buffer() == a->buffer() && whole->writes() >= a->writes());
      }
      if (!known) reject(what, buffer_name(a->buffer()) + " is not one that the launch uses so");
    }
    ++step_;
  }

  void costs(const std::string& what, const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* nodes,
             const fb::Expr* flops, const fb::Expr* bytes) const {
    for (std::uint32_t i = 0; i < count(nodes); ++i) name(what + " node " + number(i), nodes->Get(i), false);
    expr(what + " flops", flops, Scope::looping, false);
    expr(what + " bytes", bytes, Scope::looping, false);
  }

  void arg(const std::string& where, const fb::Arg* a) const {
    if (!a) reject(where, "is missing");
    if (a->kind() > fb::ArgKind::MAX) reject(where, "unknown kind " + number(static_cast<int>(a->kind())));
    if (a->kind() == fb::ArgKind::buffer) return buffer_arg(where, *a);
    if (a->writes()) reject(where, "only buffers can be written");
    expr(where, a->value(), Scope::looping);
  }

  void buffer_arg(const std::string& where, const fb::Arg& a) const {
    if (a.buffer() < 0 || a.buffer() >= static_cast<std::int64_t>(count(plan_.buffers())))
      reject(where, "buffer " + number(a.buffer()) + " of " + number(count(plan_.buffers())));
    expr(where + " offset", a.value(), Scope::looping, false);
    const auto* buffer = plan_.buffers()->Get(static_cast<std::uint32_t>(a.buffer()));
    const std::string what = buffer_name(a.buffer());
    switch (buffer->kind()) {
      case fb::BufferKind::arena: {
        if (buffer->entry() != entry_) reject(where, what + " belongs to another entry point");
        const auto root = static_cast<std::size_t>(root_[static_cast<std::size_t>(a.buffer())]);
        if (step_ + steps_ <= first_[root] || step_ > last_[root])
          reject(where, what + " is used at step " + number(step_) + ", outside its life " + number(first_[root]) + " to " +
                            number(last_[root]));
        break;
      }
      case fb::BufferKind::input:
      case fb::BufferKind::output:
        if (!bound_.count(a.buffer())) reject(where, what + " is not bound by this entry point");
        break;
      default:
        break;
    }
    if (a.writes() && (buffer->kind() == fb::BufferKind::constant || buffer->kind() == fb::BufferKind::input))
      reject(where, what + " is written, but is a" +
                        (buffer->kind() == fb::BufferKind::input ? std::string("n input") : std::string(" constant")));
  }

  void gemm(const std::string& where, const fb::BlasGemm& g) const {
    const fb::Arg* args[] = {g.a(), g.b(), g.c()};
    for (int i = 0; i < 3; ++i) {
      const std::string what = where + " operand " + "ABC"[i];
      arg(what, args[i]);
      if (args[i]->kind() != fb::ArgKind::buffer) reject(what, "is not a buffer");
      const auto dtype = plan_.buffers()->Get(static_cast<std::uint32_t>(args[i]->buffer()))->dtype();
      if (dtype != fb::DType::f32) reject(what, "wanted float32, found " + std::string(fb::EnumNameDType(dtype)));
    }
    if (!g.c()->writes()) reject(where + " operand C", "is not marked as written");
    const std::pair<const char*, const fb::Expr*> sizes[] = {{"m", g.m()},     {"n", g.n()},     {"k", g.k()},
                                                             {"lda", g.lda()}, {"ldb", g.ldb()}, {"ldc", g.ldc()}};
    for (const auto& [what, e] : sizes) expr(where + " " + what, e, Scope::looping);
    const std::pair<const char*, const fb::Expr*> optional[] = {
        {"batch", g.batch()}, {"stride_a", g.stride_a()}, {"stride_b", g.stride_b()}, {"stride_c", g.stride_c()}};
    for (const auto& [what, e] : optional) expr(where + " " + what, e, Scope::looping, false);
    name(where, g.name(), false);
    costs(where, g.nodes(), g.flops(), g.bytes());
  }

  void variables() const {
    std::set<std::string_view> seen;
    for (std::uint32_t i = 0; i < count(plan_.variables()); ++i) {
      const auto* v = plan_.variables()->Get(i);
      const std::string where = "variable " + number(i);
      unique(where, seen, v->name());
      dtype(where, v->dtype());
      if (v->buffer() < 0 || v->buffer() >= static_cast<std::int64_t>(count(plan_.buffers())))
        reject(where, "buffer " + number(v->buffer()) + " of " + number(count(plan_.buffers())));
      if (plan_.buffers()->Get(static_cast<std::uint32_t>(v->buffer()))->kind() != fb::BufferKind::state)
        reject(where, buffer_name(v->buffer()) + " is not of kind state");
      shape(where, v->shape(), Scope::constant);
    }
    verify_variable_places(plan_);
  }

  const fb::Plan& plan_;
  std::uint64_t constant_bytes_;
  std::vector<std::int64_t> sizes_;  // of each entry's schedule
  std::vector<std::int64_t> root_;   // of each buffer: the end of its alias chain
  std::vector<int> first_, last_;    // of each root: its merged life
  std::set<std::string_view> entry_names_;
  std::set<int> bound_;        // buffers bound by the entry being checked
  std::vector<int> counters_;  // of the loops around the step being checked
  int entry_ = -1;
  int step_ = 0;
  int steps_ = 1;  // of the launch being checked
};

}  // namespace

std::uint64_t dtype_bytes(fb::DType dtype) {
  switch (dtype) {
    case fb::DType::f64:
    case fb::DType::i64:
    case fb::DType::u64:
      return 8;
    case fb::DType::f32:
    case fb::DType::i32:
    case fb::DType::u32:
    case fb::DType::string_:
      return 4;
    case fb::DType::f16:
    case fb::DType::bf16:
    case fb::DType::i16:
    case fb::DType::u16:
      return 2;
    default:
      return 1;
  }
}

const fb::Plan& verify_metadata(std::span<const std::byte> metadata, std::uint64_t constant_bytes) {
  if (metadata.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) throw Error(ErrorKind::invalid, "metadata is larger than 2 GiB");
  if (metadata.size() < 8) throw Error(ErrorKind::invalid, "metadata is too short");
  flatbuffers::Verifier::Options options;
  options.max_tables = 1u << 24;
  flatbuffers::Verifier structure(reinterpret_cast<const std::uint8_t*>(metadata.data()), metadata.size(), options);
  if (!fb::VerifyPlanBuffer(structure)) throw Error(ErrorKind::invalid, "the metadata's structure is damaged");
  const fb::Plan& plan = *fb::GetPlan(metadata.data());
  Verifier(plan, constant_bytes).run();
  return plan;
}

}  // namespace oclc::package
