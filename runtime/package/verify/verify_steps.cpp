// Entry points and their steps.
#include "runtime/package/verify/plan_verifier.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/package/arena.h"
#include "runtime/package/verify/verify_host.h"

namespace oclc::package {

namespace fb = oclc::plan;

void PlanVerifier::binding(const std::string& where, const fb::Binding& b, fb::BufferKind kind, std::set<int>& used) {
  dtype(where, b.dtype());
  if (b.buffer() < 0 || b.buffer() >= static_cast<std::int64_t>(count(plan_.buffers())))
    reject(where, "buffer " + number(b.buffer()) + " of " + number(count(plan_.buffers())));
  if (plan_.buffers()->Get(static_cast<std::uint32_t>(b.buffer()))->kind() != kind)
    reject(where, buffer_name(b.buffer()) + " is not of kind " + fb::EnumNameBufferKind(kind));
  if (!used.insert(b.buffer()).second) reject(where, buffer_name(b.buffer()) + " is bound twice");
  if (b.limit() < 0) reject(where, "the limit of its values is " + number(b.limit()));
  // What the run computes is no size of what it is given: nothing would compare the two.
  shape(where, b.shape(), kind == fb::BufferKind::input ? Scope::looping : Scope::symbolic);
}

void PlanVerifier::shape(const std::string& where, const flatbuffers::Vector<flatbuffers::Offset<fb::Expr>>* dims,
                         Scope scope) const {
  if (count(dims) > kMaxRank) reject(where, "rank " + number(count(dims)) + " is above " + number(kMaxRank));
  for (std::uint32_t d = 0; d < count(dims); ++d) expr(where + " dimension " + number(d), dims->Get(d), scope);
}

void PlanVerifier::entry(std::uint32_t index) {
  const auto* e = plan_.entries()->Get(index);
  unique("entry point " + number(index), entry_names_, e->name());
  const std::string where = "entry point '" + e->name()->str() + "'";
  bound_.clear();
  forget_from(0);
  if (count(e->inputs()) > kMaxPorts || count(e->outputs()) > kMaxPorts)
    reject(where, number(count(e->inputs())) + " inputs and " + number(count(e->outputs())) + " outputs, allowed are " +
                      number(kMaxPorts));
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

void PlanVerifier::steps(const std::string& entry_name, const flatbuffers::Vector<flatbuffers::Offset<fb::Step>>* list) {
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

void PlanVerifier::loop(const std::string& where, const std::string& entry_name, const fb::Loop& l) {
  expr(where + " trip count", l.trip(), Scope::looping);
  if (l.counter() < 0 || l.counter() >= static_cast<std::int64_t>(count(plan_.symbols())))
    reject(where, "loop counter " + number(l.counter()) + " of " + number(count(plan_.symbols())) + " symbols");
  if (!plan_.symbols()->Get(static_cast<std::uint32_t>(l.counter()))->loop())
    reject(where, "its loop counter is not a loop symbol");
  if (known_[static_cast<std::size_t>(l.counter())] > 0) reject(where, "two nested loops use one counter");
  if (l.condition() != -1) {
    const auto* first = count(l.body()) == 0 ? nullptr : l.body()->Get(0)->body_as_Read();
    if (!first || count(first->dims()) != 1 || first->dims()->Get(0) != l.condition())
      reject(where, "its condition is not what the first step of its body reads");
  }
  const std::size_t known = counters_.size();
  know(l.counter());
  steps(entry_name, l.body());
  forget_from(known);
}

void PlanVerifier::read(const std::string& where, const fb::Read& r) {
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
  for (std::uint32_t i = 0; i < count(r.nodes()); ++i) name(where + " node " + number(i), r.nodes()->Get(i), false);
  for (const int dim : *r.dims()) {
    if (dim < 0 || dim >= static_cast<std::int64_t>(count(plan_.symbols())) ||
        !plan_.symbols()->Get(static_cast<std::uint32_t>(dim))->upper())
      reject(where, "symbol " + number(dim) + " is none that can be read");
    know(dim);
  }
}

void PlanVerifier::host(const std::string& where, const fb::Host& h) const {
  refer(count(h.integers()) * sizeof(std::int64_t));
  refer(h.texts());
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

void PlanVerifier::launch(const std::string& where, const fb::Launch& l) {
  if (!is_identifier(text(l.name()))) reject(where, "its kernel name is not an identifier");
  const std::string what = where + " '" + l.name()->str() + "'";
  if (l.program() < 0 || l.program() >= static_cast<std::int64_t>(count(plan_.programs())))
    reject(what, "program " + number(l.program()) + " of " + number(count(plan_.programs())));
  const fb::Program& program = *plan_.programs()->Get(static_cast<std::uint32_t>(l.program()));
  if (count(program.part_bytes()) > 0) {
    const bool own = program.own_kernels();
    std::set<std::string_view> kernels;
    for (std::uint32_t i = 0; own && i < count(l.parts()); ++i) kernels.insert(text(l.parts()->Get(i)->kernel()));
    const std::size_t pieces = own ? kernels.size() : count(l.parts());
    if (pieces != count(program.part_bytes()) || text(program.name()) != text(l.name()) || (own && kernels.count("")))
      reject(what, "has " + number(pieces) + (own ? " kernels of its parts" : " parts") + ", its program is of kernel '" +
                       program.name()->str() + "' with " + number(count(program.part_bytes())));
  }
  if (count(l.args()) > kMaxArgs) reject(what, "has more than " + number(kMaxArgs) + " arguments");
  steps_ = parts_of(l);
  ++launch_;
  const fb::Arg* firsts[static_cast<std::size_t>(fb::BufferKind::MAX) + 1] = {};
  for (std::uint32_t i = 0; i < count(l.args()); ++i) {
    const fb::Arg* a = l.args()->Get(i);
    arg(what + " argument " + number(i), a);
    if (a->shared()) shared_arg(what + " argument " + number(i), *a, firsts);
    const auto use = [&](std::int32_t buffer, bool writes) {
      std::uint64_t& known = use_[static_cast<std::size_t>(buffer)];
      known = std::max(known, 2 * launch_ + (writes ? 1 : 0));
    };
    for (std::uint32_t k = 0; k < count(a->cells()); ++k)
      if (a->cells()->Get(k)->buffer() >= 0) use(a->cells()->Get(k)->buffer(), a->cells()->Get(k)->writes());
    if (a->kind() != fb::ArgKind::buffer) continue;
    use(a->buffer(), a->writes());
    const fb::Arg*& first =
        firsts[static_cast<std::size_t>(plan_.buffers()->Get(static_cast<std::uint32_t>(a->buffer()))->kind())];
    if (!first && !a->shared()) first = a;
  }
  steps_ = 1;
  for (std::uint32_t i = 0; i < count(l.parts()); ++i) part(what + " part " + number(i), *l.parts()->Get(i));
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
  name(what + " title", l.title(), false);
  costs(what, l.nodes(), l.flops(), l.bytes());
}

// An argument without a memory object: another one's has to be its own, whatever the sizes.
void PlanVerifier::shared_arg(const std::string& where, const fb::Arg& a, std::span<const fb::Arg* const> firsts) const {
  if (a.kind() != fb::ArgKind::buffer) reject(where, "is shared, but not a buffer");
  const auto buffer_of = [&](const fb::Arg& of) { return plan_.buffers()->Get(static_cast<std::uint32_t>(of.buffer())); };
  const auto* buffer = buffer_of(a);
  const std::string what = buffer_name(a.buffer());
  if (buffer->kind() != fb::BufferKind::arena && buffer->kind() != fb::BufferKind::constant)
    reject(where, what + " is shared, but neither scratch nor a constant");
  if (has_open_size(buffer->bytes())) reject(where, what + " is shared, but its size is read late");
  const fb::Arg* first = firsts[static_cast<std::size_t>(buffer->kind())];
  if (!first) reject(where, what + " is shared, but no argument before passes its memory object");
  if (has_open_size(buffer_of(*first)->bytes())) reject(where, what + " is shared with one whose size is read late");
}

// Whether the size depends on a dimension for which memory is laid out when it is read.
bool PlanVerifier::has_open_size(const fb::Expr* size) const {
  const std::vector<std::int64_t> used = symbols_of(*size);
  return std::any_of(used.begin(), used.end(), [&](std::int64_t s) { return row_[static_cast<std::size_t>(s)] != 0; });
}

void PlanVerifier::part(const std::string& where, const fb::Part& p) {
  name(where, p.name(), false);
  if (p.kernel() && !is_identifier(text(p.kernel()))) reject(where, "its kernel name is not an identifier");
  costs(where, p.nodes(), p.flops(), p.bytes());
  for (std::uint32_t i = 0; i < count(p.args()); ++i) {
    const fb::Arg* a = p.args()->Get(i);
    const std::string what = where + " argument " + number(i);
    arg(what, a);
    if (a->kind() != fb::ArgKind::buffer) reject(what, "is not a buffer");
    if (use_[static_cast<std::size_t>(a->buffer())] < 2 * launch_ + (a->writes() ? 1 : 0))
      reject(what, buffer_name(a->buffer()) + " is not one that the launch uses so");
  }
  ++step_;
}

void PlanVerifier::costs(const std::string& what, const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* nodes,
                         const fb::Expr* flops, const fb::Expr* bytes) const {
  for (std::uint32_t i = 0; i < count(nodes); ++i) name(what + " node " + number(i), nodes->Get(i), false);
  expr(what + " flops", flops, Scope::looping, false);
  expr(what + " bytes", bytes, Scope::looping, false);
}

void PlanVerifier::arg(const std::string& where, const fb::Arg* a) const {
  if (!a) reject(where, "is missing");
  if (a->kind() > fb::ArgKind::MAX) reject(where, "unknown kind " + number(static_cast<int>(a->kind())));
  if (a->kind() == fb::ArgKind::rows) return rows_arg(where, *a);
  if (count(a->numbers()) + count(a->cells()) > 0) reject(where, "has numbers, but is no rows");
  if (a->kind() == fb::ArgKind::buffer) return buffer_arg(where, *a);
  if (a->writes()) reject(where, "only buffers can be written");
  expr(where, a->value(), Scope::looping);
}

// Cells put each number once, before others count on it.
void PlanVerifier::rows_arg(const std::string& where, const fb::Arg& a) const {
  if (a.writes()) reject(where, "only buffers can be written");
  if (count(a.numbers()) < 1 || count(a.numbers()) > kMaxRowNumbers)
    reject(where, "wanted 1 to " + number(kMaxRowNumbers) + " numbers, found " + number(count(a.numbers())));
  aligned(where, a.numbers());
  expr(where, a.value(), Scope::looping, false);  // which nobody wants, and who looks for symbols sees
  std::vector<bool> later(count(a.numbers()), false), put = later;
  for (std::uint32_t i = 0; i < count(a.cells()); ++i)
    if (a.cells()->Get(i)->at() < later.size()) later[a.cells()->Get(i)->at()] = true;
  for (std::uint32_t i = 0; i < count(a.cells()); ++i) {
    const fb::Cell& cell = *a.cells()->Get(i);
    const std::string what = where + " cell " + number(i);
    if (cell.at() >= later.size()) reject(what, "puts number " + number(cell.at()) + " of " + number(count(a.numbers())));
    if (put[cell.at()]) reject(what, "puts number " + number(cell.at()) + " a second time");
    expr(what, cell.value(), Scope::looping, false);
    if (cell.buffer() < -1 || (cell.buffer() < 0 && (cell.base() != -1 || cell.writes())))
      reject(what, "has a base or writes, but no buffer");
    if (cell.buffer() >= 0) {
      buffer_use(what, cell.buffer(), cell.writes());
      buffer_use(what + " base", cell.base(), false);
    }
    const auto plus = static_cast<std::size_t>(cell.plus());
    if (cell.plus() < -1 || (cell.plus() >= 0 && (plus >= later.size() || (later[plus] && !put[plus]))))
      reject(what, "counts on number " + number(cell.plus()) + ", which is not known before it");
    put[cell.at()] = true;
  }
}

bool PlanVerifier::size_is_known(const fb::Expr* size) const {
  const std::vector<std::int64_t> used = symbols_of(*size);
  return std::none_of(used.begin(), used.end(), [&](std::int64_t s) {
    const std::uint32_t row = row_[static_cast<std::size_t>(s)];
    return row != 0 && (needs_[row] & ~open_known_).any();
  });
}

void PlanVerifier::buffer_arg(const std::string& where, const fb::Arg& a) const {
  buffer_use(where, a.buffer(), a.writes());
  expr(where + " offset", a.value(), Scope::looping, false);
}

void PlanVerifier::buffer_use(const std::string& where, std::int64_t index, bool writes) const {
  if (index < 0 || index >= static_cast<std::int64_t>(count(plan_.buffers())))
    reject(where, "buffer " + number(index) + " of " + number(count(plan_.buffers())));
  const auto* buffer = plan_.buffers()->Get(static_cast<std::uint32_t>(index));
  const std::string what = buffer_name(index);
  if (!size_is_known(buffer->bytes())) reject(where, what + " is used before its size is read");
  switch (buffer->kind()) {
    case fb::BufferKind::arena: {
      if (buffer->entry() != entry_) reject(where, what + " belongs to another entry point");
      const auto root = static_cast<std::size_t>(root_[static_cast<std::size_t>(index)]);
      if (step_ + steps_ <= first_[root] || step_ > last_[root])
        reject(where, what + " is used at step " + number(step_) + ", outside its life " + number(first_[root]) + " to " +
                          number(last_[root]));
      break;
    }
    case fb::BufferKind::input:
    case fb::BufferKind::output:
      if (!bound_.count(static_cast<int>(index))) reject(where, what + " is not bound by this entry point");
      break;
    default:
      break;
  }
  if (writes && (buffer->kind() == fb::BufferKind::constant || buffer->kind() == fb::BufferKind::input))
    reject(where, what + " is written, but is a" +
                      (buffer->kind() == fb::BufferKind::input ? std::string("n input") : std::string(" constant")));
}

void PlanVerifier::gemm(const std::string& where, const fb::BlasGemm& g) const {
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

}  // namespace oclc::package
