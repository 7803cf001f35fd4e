#include "compiler/plan/launch_tables.h"

#include <algorithm>

#include "compiler/codegen/attention/attention_kernel.h"
#include "compiler/codegen/launches/chain_kernel.h"
#include "compiler/codegen/launches/persistent_kernel.h"
#include "compiler/codegen/launches/resident_kernel.h"
#include "compiler/codegen/launches/side_by_side.h"
#include "compiler/schedule/resident.h"

namespace oclc {

namespace fb = flatbuffers;

std::string plan_text(std::string text) {
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

std::vector<fb::Offset<fb::String>> plan_texts(fb::FlatBufferBuilder& builder, const std::vector<std::string>& list) {
  std::vector<fb::Offset<fb::String>> out;
  for (const std::string& text : list) out.push_back(builder.CreateString(plan_text(text)));
  return out;
}

fb::Offset<plan::Launch> LaunchTables::table(const PlacedKernel& code, const GeneratedKernel& g, const Args& args,
                                             std::string_view anchor, const Work& work,
                                             const std::vector<fb::Offset<plan::Part>>& parts) {
  std::vector<Expr> global = g.groups;
  for (std::size_t i = 0; i < global.size(); ++i) global[i] *= Expr(static_cast<std::int64_t>(g.local[i]));
  const auto globals = plan_.symbols.exprs(global);
  const auto nodes = plan_texts(plan_.builder, work.sources);
  ++launches_;
  return plan::CreateLaunchDirect(plan_.builder, code.name.c_str(), code.program, &args, &globals, &g.local,
                                  std::string(anchor).c_str(), &nodes, plan_.symbols.expr(work.flops),
                                  plan_.symbols.expr(work.bytes), &parts);
}

fb::Offset<plan::Arg> LaunchTables::buffer(int buffer, bool written, const Expr& offset, bool shared) {
  return plan::CreateArg(plan_.builder, plan::ArgKind::buffer, buffer, plan_.symbols.expr(offset), written, shared);
}

MemoryObject LaunchTables::memory_object(int index) const {
  const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(index)];
  if (buffer.kind == BufferKind::constant && buffer.elements != Expr(0)) return MemoryObject::constants;
  return buffer.kind == BufferKind::arena && !plan_.symbols.is_open(buffer.elements) ? MemoryObject::arena : MemoryObject::own;
}

LaunchTables::Args LaunchTables::arguments(GeneratedKernel& g, const std::vector<Passed>& passed) {
  std::vector<MemoryObject> objects;
  const bool shares = plan_.one_memory && target_.has.one_memory_object;
  for (const Passed& p : passed) objects.push_back(shares && p.buffer >= 0 ? memory_object(p.buffer) : MemoryObject::own);
  const std::vector<bool> shared = share_memory(g, objects);
  Args args;
  for (std::size_t i = 0; i < passed.size(); ++i)
    args.push_back(passed[i].buffer < 0 ? dimension(g.arguments[i])
                                        : buffer(passed[i].buffer, passed[i].written, Expr(passed[i].offset), shared[i]));
  return args;
}

fb::Offset<plan::Arg> LaunchTables::dimension(const KernelArgument& argument) {
  return plan::CreateArg(plan_.builder, plan::ArgKind::int64, -1, plan_.symbols.expr(Expr::symbol(argument.symbol)));
}

int LaunchTables::add_packed(GeneratedKernel& g) {
  const auto first = static_cast<int>(plan_.buffers.size());
  for (Buffer& packed : g.packed) plan_.buffers.push_back(std::move(packed));
  return first;
}

LaunchTables::Made LaunchTables::make(const Kernel& kernel, std::int64_t asked_bytes) {
  if (later_ && later_->kernel == &kernel) {
    Made made = std::move(*later_);
    later_.reset();
    return made;
  }
  Kernel named = kernel;
  named.name = PlacedKernels::kPlaceholder;
  if (named.contraction) named.contraction->asked_bytes = asked_bytes;
  Made made{&kernel, generate(named, schedule_.buffers, target_), 0};
  made.code.name = kernel.name;
  made.first_packed = add_packed(made.code);
  return made;
}

std::optional<LaunchTables::Passed> LaunchTables::asked_piece(const Later& later) {
  if (!later.kernel) return std::nullopt;
  later_ = make(*later.kernel);
  if (later_->code.packed.empty()) return std::nullopt;
  const int weights = later_->first_packed;
  const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(weights)];
  const std::int64_t first = (kAskingLaunches - 1 - later.launches_before) * kAskedBytes;
  if (buffer.kind != BufferKind::constant || buffer.dtype != DType::u32 || buffer.elements.value() * 4 < first + kAskedBytes)
    return std::nullopt;
  return Passed{weights, false, first / 4};
}

fb::Offset<plan::Launch> LaunchTables::single(const Kernel& kernel, const Later& later) {
  const auto asked = asked_piece(later);
  Made made = make(kernel, asked ? kAskedBytes : 0);
  GeneratedKernel& g = made.code;
  const int now = plan_.lives.step(), first_packed = made.first_packed;
  const auto count = static_cast<int>(kernel.operands.size());
  std::vector<Passed> passed;
  for (const KernelArgument& argument : g.arguments) {
    if (argument.kind == KernelArgument::Kind::dimension) {
      passed.push_back({});
    } else if (argument.operand < 0) {
      passed.push_back(asked.value());
      plan_.lives.touch(asked->buffer, now);
    } else if (argument.operand >= count) {
      const int packed = first_packed + argument.operand - count;
      passed.push_back({packed, plan_.buffers[static_cast<std::size_t>(packed)].kind != BufferKind::constant});
      plan_.lives.touch(packed, now);
    } else {
      const auto at = static_cast<std::size_t>(argument.operand);
      passed.push_back({kernel.operands[at].buffer, kernel.operands[at].written});
      plan_.lives.touch_operand(kernel, at, now);
    }
  }
  const Args args = arguments(g, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  copies_ += kernel.is_copy ? 1 : 0;
  return table(code, g, args, name_of(kernel.anchor), {kernel.sources, kernel.flops, kernel.bytes});
}

namespace {

std::string first_loop(const Step& step) {
  for (const Step& inner : step.body) {
    if (inner.kernel < 0) return inner.counter;
  }
  return "steps";
}

}  // namespace

fb::Offset<plan::Launch> LaunchTables::persistent(const Step& step) {
  PersistentKernel persistent = generate_persistent(PlacedKernels::kPlaceholder, step, schedule_, target_);
  GeneratedKernel& g = persistent.kernel;
  g.name = "k_" + first_loop(step) + "_persistent";
  const PlacedKernel code = plan_.kernels.place(g);
  Args args;
  const int now = plan_.lives.step();
  for (const KernelArgument& argument : g.arguments) {
    if (argument.kind == KernelArgument::Kind::dimension) {
      args.push_back(dimension(argument));
      continue;
    }
    const PersistentKernel::Argument& operand = persistent.buffers[static_cast<std::size_t>(argument.operand)];
    plan_.lives.touch_whole(operand.buffer, now);
    args.push_back(buffer(operand.buffer, operand.written));
  }
  return table(code, g, args, "persistent", {persistent.sources, persistent.flops, persistent.bytes});
}

fb::Offset<plan::Launch> LaunchTables::chain(const Step& step) {
  PersistentKernel chain = generate_chain(PlacedKernels::kPlaceholder, step, schedule_, target_);
  chain.kernel.name = schedule_.kernels[static_cast<std::size_t>(step.body.front().kernel)].name + "_chain";
  return several(std::move(chain), "chain");
}

fb::Offset<plan::Launch> LaunchTables::attention(const Step& step) {
  PersistentKernel attention = generate_attention(PlacedKernels::kPlaceholder, step, schedule_, target_);
  attention.kernel.name = schedule_.kernels[static_cast<std::size_t>(step.body.front().kernel)].name + "_attention";
  return several(std::move(attention), "attention");
}

fb::Offset<plan::Launch> LaunchTables::several(PersistentKernel all, std::string_view anchor) {
  GeneratedKernel& g = all.kernel;
  const int now = plan_.lives.step();
  std::vector<Passed> passed;
  for (const KernelArgument& argument : g.arguments) {
    if (argument.kind == KernelArgument::Kind::dimension) {
      passed.push_back({});
      continue;
    }
    const PersistentKernel::Argument& operand = all.buffers[static_cast<std::size_t>(argument.operand)];
    plan_.lives.touch_whole(operand.buffer, now);
    passed.push_back({operand.buffer, operand.written});
  }
  const Args args = arguments(g, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  return table(code, g, args, anchor, {all.sources, all.flops, all.bytes});
}

fb::Offset<plan::Launch> LaunchTables::side_by_side(std::span<const Step> steps) {
  SideBySideKernel together = generate_side_by_side(PlacedKernels::kPlaceholder, steps, schedule_, target_);
  GeneratedKernel& g = together.kernel;
  const int now = plan_.lives.step();
  Work work;
  for (const Step& step : steps) {
    const Kernel& kernel = schedule_.kernels[static_cast<std::size_t>(step.kernel)];
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) plan_.lives.touch_operand(kernel, i, now);
    add_sources(work.sources, kernel.sources);
    work.flops += kernel.flops;
    work.bytes += kernel.bytes;
    copies_ += kernel.is_copy ? 1 : 0;
  }
  g.name = schedule_.kernels[static_cast<std::size_t>(steps.front().kernel)].name + "_beside";
  std::vector<Passed> passed;
  for (const SideBySideKernel::Argument& a : together.buffers) passed.push_back({a.buffer, a.written});
  const Args args = arguments(g, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  return table(code, g, args, "beside", work);
}

fb::Offset<plan::Launch> LaunchTables::resident(std::span<const Step> stretch) {
  ResidentKernel resident = generate_resident(PlacedKernels::kPlaceholder, stretch, schedule_, target_);
  GeneratedKernel& g = resident.kernel;
  g.name = resident.parts.front().kernels.front()->name + "_and_on";
  const auto own = static_cast<int>(schedule_.buffers.size());
  const int first_packed = add_packed(g);
  if (progress_ < 0) {
    progress_ = static_cast<int>(plan_.buffers.size());
    plan_.buffers.push_back({"resident.progress", BufferKind::state, DType::i32, Expr(0), {}, -1});
  }
  Buffer& progress = plan_.buffers[static_cast<std::size_t>(progress_)];
  progress.elements = std::max(progress.elements.value(), progress_ints(resident.kernels));
  const auto known = [&](int number) { return number < own ? number : first_packed + number - own; };
  const auto joined = static_cast<int>(plan_.buffers.size());
  if (!resident.joined.empty()) {
    plan_.buffers.push_back({"resident.constants", BufferKind::constant, DType::u8, Expr(resident.joined_bytes), {}, -1});
    for (const int number : resident.joined) joined_[joined].push_back(known(number));
  }
  const auto buffer_of = [&](const ResidentKernel::Argument& a) {
    return a.buffer == ResidentKernel::Argument::kProgress ? progress_
           : a.buffer == ResidentKernel::Argument::kJoined ? joined
                                                           : known(a.buffer);
  };
  std::vector<Passed> passed;
  for (const KernelArgument& argument : g.arguments) {
    passed.push_back({});
    if (argument.kind == KernelArgument::Kind::dimension) continue;
    const ResidentKernel::Argument& a = resident.buffers[static_cast<std::size_t>(argument.operand)];
    passed.back() = {buffer_of(a), a.written};
  }
  const Args whole = arguments(g, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  std::vector<fb::Offset<plan::Part>> parts;
  Work work;
  for (const ResidentKernel::Part& part : resident.parts) {
    const int now = plan_.lives.step();
    Args args;
    for (const ResidentKernel::Argument& a : part.buffers) {
      const int number = buffer_of(a);
      if (part.kernels.size() > 1) {
        plan_.lives.touch_whole(number, now);
      } else {
        const Kernel& kernel = *part.kernels.front();
        plan_.lives.touch(number, now);
        for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
          if (kernel.operands[i].buffer == number) plan_.lives.touch_operand(kernel, i, now);
        }
      }
      args.push_back(buffer(number, a.written));
    }
    std::vector<std::string> own_sources;
    for (const Kernel* kernel : part.kernels) {
      copies_ += kernel->is_copy ? 1 : 0;
      add_sources(own_sources, kernel->sources);
    }
    const auto nodes = plan_texts(plan_.builder, own_sources);
    add_sources(work.sources, own_sources);
    work.flops += part.flops;
    work.bytes += part.bytes;
    parts.push_back(plan::CreatePartDirect(plan_.builder, part.name.c_str(), part.anchor.c_str(), &nodes,
                                           plan_.symbols.expr(part.flops), plan_.symbols.expr(part.bytes), &args,
                                           part.own_kernel.empty() ? nullptr : (code.name + part.own_kernel).c_str()));
  }
  return table(code, g, whole, "resident", work, parts);
}

fb::Offset<plan::BlasGemm> LaunchTables::blas(const Gemm& g) {
  const int now = plan_.lives.step();
  for (const int number : {g.a, g.b, g.c}) plan_.lives.touch_whole(number, now);
  const auto nodes = plan_texts(plan_.builder, g.sources);
  const auto a = buffer(g.a, false, g.offset_a), b = buffer(g.b, false, g.offset_b), c = buffer(g.c, true, g.offset_c);
  PlanSymbols& symbols = plan_.symbols;
  ++launches_;
  return plan::CreateBlasGemmDirect(plan_.builder, a, b, c, symbols.expr(g.m), symbols.expr(g.n), symbols.expr(g.k),
                                    symbols.expr(g.lda), symbols.expr(g.ldb), symbols.expr(g.ldc), symbols.expr(g.batch),
                                    symbols.expr(g.stride_a), symbols.expr(g.stride_b), symbols.expr(g.stride_c), g.trans_a,
                                    g.trans_b, 1, 0, &nodes, symbols.expr(g.flops), symbols.expr(g.bytes), g.name.c_str());
}

}  // namespace oclc
