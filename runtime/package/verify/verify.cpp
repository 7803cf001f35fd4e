#include "runtime/package/verify/plan_verifier.h"

#include <algorithm>
#include <cctype>

#include "runtime/package/expr_code.h"
#include "runtime/package/verify/verify_host.h"
#include "runtime/package/verify/verify_source.h"
#include "runtime/package/verify/verify_variables.h"

namespace oclc::package {

namespace fb = oclc::plan;

bool PlanVerifier::is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

void PlanVerifier::reject(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::invalid, where + ": " + what);
}

void PlanVerifier::refer(std::uint64_t bytes) const {
  referred_ += bytes;
  if (referred_ / kMaxRepetition > metadata_bytes_)
    reject("metadata", "its texts and expressions have over " + number(static_cast<std::int64_t>(kMaxRepetition)) +
                           " times its " + std::to_string(metadata_bytes_) + " bytes: too many places refer to one");
}

void PlanVerifier::refer(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts) const {
  for (std::uint32_t i = 0; i < count(texts); ++i) refer(sizeof(flatbuffers::uoffset_t) + texts->Get(i)->size());
}

void PlanVerifier::run() {
  for (const auto* list : {plan_.options(), plan_.extensions(), plan_.strings()}) refer(list);
  symbols();
  assumptions();
  programs();
  verify_strings(plan_);
  schedule_sizes();
  buffers();
  alias_chains();
  for (std::uint32_t i = 0; i < count(plan_.entries()); ++i) entry(i);
  variables();
  facts();
  for (std::uint32_t i = 0; i < count(plan_.extensions()); ++i)
    if (!is_identifier(text(plan_.extensions()->Get(i)))) reject("extension " + number(i), "wanted an identifier");
}

void PlanVerifier::name(const std::string& where, const flatbuffers::String* value, bool required) const {
  const std::string_view v = text(value);
  refer(sizeof(flatbuffers::uoffset_t) + v.size());
  if (required && v.empty()) reject(where, "has no name");
  if (v.size() > kMaxNameBytes) reject(where, "its name is longer than " + number(kMaxNameBytes) + " bytes");
  if (v.find('\0') != v.npos) reject(where, "its name contains a NUL");
}

void PlanVerifier::unique(const std::string& where, std::set<std::string_view>& seen, const flatbuffers::String* value) const {
  name(where, value);
  if (!seen.insert(text(value)).second) reject(where, "the name '" + std::string(text(value)) + "' is used twice");
}

void PlanVerifier::dtype(const std::string& where, fb::DType value) const {
  if (value > fb::DType::MAX) reject(where, "unknown element type " + number(static_cast<int>(value)));
}

void PlanVerifier::aligned(const std::string& where, const flatbuffers::Vector<std::int64_t>* list) const {
  if (list && reinterpret_cast<std::uintptr_t>(list->data()) % alignof(std::int64_t) != 0)
    reject(where, "its numbers are not aligned");
}

void PlanVerifier::expr(const std::string& where, const fb::Expr* e, Scope scope, bool required) const {
  if (!e || count(e->code()) == 0) {
    if (required) reject(where, "has no expression");
    return;
  }
  aligned(where, e->code());
  std::size_t depth = 0;
  const auto& code = *e->code();
  refer(code.size() * sizeof(std::int64_t));
  if (code.size() > kMaxExprWords)
    reject(where, "its expression has " + number(code.size()) + " words, allowed are " + number(kMaxExprWords));
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

std::vector<std::int64_t> PlanVerifier::symbols_of(const fb::Expr& e) {
  std::vector<std::int64_t> found;
  for (std::uint32_t i = 0; i < e.code()->size(); ++i) {
    const std::int64_t op = e.code()->Get(i);
    if (op != static_cast<std::int64_t>(ExprOp::constant) && op != static_cast<std::int64_t>(ExprOp::symbol)) continue;
    ++i;
    if (op == static_cast<std::int64_t>(ExprOp::symbol)) found.push_back(e.code()->Get(i));
  }
  return found;
}

void PlanVerifier::use_symbol(const std::string& where, std::int64_t index, Scope scope) const {
  if (index < 0 || index >= count(plan_.symbols()))
    reject(where, "symbol " + number(index) + " of " + number(count(plan_.symbols())) + " symbols");
  const auto* symbol = plan_.symbols()->Get(static_cast<std::uint32_t>(index));
  if (scope == Scope::constant) reject(where, "its expression must be constant, found symbol '" + symbol->name()->str() + "'");
  if (!symbol->loop()) return;
  // Memory is laid out for the largest value, or when it is read: buffer_arg looks.
  if (symbol->upper() && scope == Scope::symbolic) return;
  if (scope == Scope::looping && known_[static_cast<std::size_t>(index)] > 0) return;
  reject(where, symbol->upper() ? "uses the symbol '" + symbol->name()->str() + "' before it is read"
                                : "uses the loop counter '" + symbol->name()->str() + "' outside its loop");
}

std::int64_t PlanVerifier::constant_value(const std::string& where, const fb::Expr* e) const {
  expr(where, e, Scope::constant);
  const auto value = evaluate({e->code()->data(), e->code()->size()}, {});
  if (!value) reject(where, "its expression overflows or divides by zero");
  return *value;
}

void PlanVerifier::know(int symbol) {
  counters_.push_back(symbol);
  const auto at = static_cast<std::size_t>(symbol);
  if (++known_[at] == 1 && open_number_[at] >= 0) open_known_.set(static_cast<std::size_t>(open_number_[at]));
}

void PlanVerifier::forget_from(std::size_t known) {
  for (; counters_.size() > known; counters_.pop_back()) {
    const auto at = static_cast<std::size_t>(counters_.back());
    if (--known_[at] == 0 && open_number_[at] >= 0) open_known_.reset(static_cast<std::size_t>(open_number_[at]));
  }
}

void PlanVerifier::note_open(std::uint32_t index) {
  const auto* symbol = plan_.symbols()->Get(index);
  OpenSymbols needs;
  if (symbol->open()) {
    if (open_count_ == kMaxOpenSymbols) reject("symbols", "more than " + number(kMaxOpenSymbols) + " are open");
    open_number_[index] = static_cast<int>(open_count_);
    needs.set(open_count_++);
  } else if (symbol->upper()) {
    for (const std::int64_t used : symbols_of(*symbol->upper())) needs |= needs_[row_[static_cast<std::size_t>(used)]];
  }
  if (needs.none()) return;
  row_[index] = static_cast<std::uint32_t>(needs_.size());
  needs_.push_back(needs);
}

void PlanVerifier::symbols() {
  std::set<std::string_view> seen;
  const std::uint32_t n = count(plan_.symbols());
  if (n > kMaxSymbols) reject("symbols", number(n) + ", allowed are " + number(kMaxSymbols));
  row_.assign(n, 0);
  open_number_.assign(n, -1);
  known_.assign(n, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto* symbol = plan_.symbols()->Get(i);
    const std::string where = "symbol " + number(i);
    unique(where, seen, symbol->name());
    if (symbol->lo() > symbol->hi() || symbol->lo() < 0)
      reject(where, "its range " + number(symbol->lo()) + " to " + number(symbol->hi()) + " is not one of dimensions");
    if (symbol->open() && !symbol->upper()) reject(where, "is open and has no largest value");
    if (!symbol->upper()) continue;
    if (!symbol->loop()) reject(where, "has a largest value but is bound by the caller");
    expr(where + " largest value", symbol->upper(), Scope::symbolic);
    for (const std::int64_t used : symbols_of(*symbol->upper()))
      if (used >= static_cast<std::int64_t>(i)) reject(where, "its largest value uses a symbol that comes later");
    note_open(i);
  }
}

void PlanVerifier::assumptions() const {
  for (std::uint32_t i = 0; i < count(plan_.assumptions()); ++i) {
    const auto* a = plan_.assumptions()->Get(i);
    const std::string where = "assumption " + number(i);
    name(where, a->node(), false);
    expr(where, a->left(), Scope::symbolic);
    expr(where, a->right(), Scope::symbolic);
  }
}

void PlanVerifier::programs() const {
  for (std::uint32_t i = 0; i < count(plan_.programs()); ++i) {
    const auto* program = plan_.programs()->Get(i);
    const std::string where = "program " + number(i);
    name(where, program->name());
    refer(text(program->source()).size() + text(program->options()).size());
    if (const std::string problem = problem_of_source(text(program->source())); !problem.empty()) reject(where, problem);
    if (const std::string problem = problem_of_options(text(program->options())); !problem.empty()) reject(where, problem);
    if (count(program->part_bytes()) > 0 && !is_identifier(text(program->name())))
      reject(where, "has parts, and its name is not an identifier");
  }
}

void PlanVerifier::variables() const {
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

void PlanVerifier::facts() const {
  if (plan_.device_class() > fb::DeviceClass::MAX)
    reject("device class", "unknown: " + number(static_cast<int>(plan_.device_class())));
  std::set<std::string_view> seen;
  if (count(plan_.metadata()) > kMaxProperties)
    reject("metadata of the model", number(count(plan_.metadata())) + " properties, allowed are " + number(kMaxProperties));
  for (std::uint32_t i = 0; i < count(plan_.metadata()); ++i) {
    const auto* property = plan_.metadata()->Get(i);
    const std::string where = "property " + number(i);
    unique(where, seen, property->name());
    const std::string_view value = text(property->value());
    refer(sizeof(flatbuffers::uoffset_t) + value.size());
    if (value.size() > kMaxPropertyBytes) reject(where, "its value is longer than " + number(kMaxPropertyBytes) + " bytes");
    if (value.find('\0') != value.npos) reject(where, "its value contains a NUL");
  }
}

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
  // A table and what refers to it take 8 bytes, as does a text: see string_count.h.
  options.max_tables =
      static_cast<flatbuffers::uoffset_t>(std::min<std::size_t>(metadata.size() / 8 * kMaxRepetition, 1u << 24));
  flatbuffers::Verifier structure(reinterpret_cast<const std::uint8_t*>(metadata.data()), metadata.size(), options);
  if (!fb::VerifyPlanBuffer(structure)) throw Error(ErrorKind::invalid, "the metadata's structure is damaged");
  const fb::Plan& plan = *fb::GetPlan(metadata.data());
  PlanVerifier(plan, metadata.size(), constant_bytes).run();
  return plan;
}

}  // namespace oclc::package
