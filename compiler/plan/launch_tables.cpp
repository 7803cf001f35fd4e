#include "compiler/plan/launch_tables.h"

#include <algorithm>

#include "compiler/codegen/launches/ragged_kernel.h"
#include "compiler/kernels/ragged_objects.h"
#include "compiler/schedule/megakernel.h"

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
                                  plan_.symbols.expr(work.bytes), &parts, work.title.empty() ? nullptr : work.title.c_str(),
                                  static_cast<std::uint32_t>(work.instances));
}

fb::Offset<plan::Arg> LaunchTables::buffer(int buffer, bool written, const Expr& offset, bool shared) {
  return plan::CreateArg(plan_.builder, plan::ArgKind::buffer, buffer, plan_.symbols.expr(offset), written, shared);
}

LaunchTables::Args LaunchTables::arguments(const GeneratedLaunch& launch, const std::vector<Passed>& passed) {
  Args args;
  const GeneratedKernel& g = launch.kernel();
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const KernelArgument& argument = g.arguments[i];
    if (argument.kind == KernelArgument::Kind::table)
      args.push_back(rows(g.tables.at(static_cast<std::size_t>(argument.operand))));
    else if (passed[i].buffer < 0)
      args.push_back(dimension(argument));
    else
      args.push_back(buffer(passed[i].buffer, passed[i].written, Expr(passed[i].offset), launch.shared[i]));
  }
  return args;
}

fb::Offset<plan::Arg> LaunchTables::rows(const MemberTable& table) {
  std::vector<fb::Offset<plan::Cell>> cells;
  for (const MemberTable::Cell& c : table.cells)
    cells.push_back(plan::CreateCell(plan_.builder, static_cast<std::uint32_t>(c.at),
                                     c.value == Expr(0) ? 0 : plan_.symbols.expr(c.value), c.buffer, c.base, c.written,
                                     c.plus));
  return plan::CreateArgDirect(plan_.builder, plan::ArgKind::rows, -1, 0, false, false, &table.numbers, &cells);
}

fb::Offset<plan::Arg> LaunchTables::dimension(const KernelArgument& argument) {
  return plan::CreateArg(plan_.builder, plan::ArgKind::int64, -1, plan_.symbols.expr(Expr::symbol(argument.symbol)));
}

const std::vector<int>& LaunchTables::packed_of(int launch) {
  std::optional<std::vector<int>>& numbers = packed_.at(static_cast<std::size_t>(launch));
  if (numbers) return *numbers;
  numbers.emplace();
  for (Buffer& packed : generated_[static_cast<std::size_t>(launch)].kernel().packed) {
    const auto next = static_cast<int>(plan_.buffers.size());
    numbers->push_back(constants_.number_of(
        packed, next, [&](int number) -> const Buffer& { return plan_.buffers[static_cast<std::size_t>(number)]; }));
    if (numbers->back() == next) plan_.buffers.push_back(std::move(packed));
  }
  return *numbers;
}

fb::Offset<plan::Launch> LaunchTables::single(const KernelStep& step) {
  const Kernel& kernel = schedule_.kernels[static_cast<std::size_t>(step.kernel)];
  const int number = next_++;
  const GeneratedLaunch& launch = generated_.at(static_cast<std::size_t>(number));
  const GeneratedKernel& g = launch.kernel();
  const int prefetched = launch.prefetched < 0 ? -1 : packed_of(launch.prefetched).at(0);
  const std::vector<int>& own = packed_of(number);
  const int now = plan_.lives.step();
  const auto count = static_cast<int>(kernel.operands.size());
  std::vector<Passed> passed;
  for (const KernelArgument& argument : g.arguments) {
    if (argument.kind == KernelArgument::Kind::dimension) {
      passed.push_back({});
    } else if (argument.operand < 0) {
      passed.push_back({prefetched, false, step.prefetch.value().from_byte / 4});
      plan_.lives.touch(prefetched, now);
    } else if (argument.operand >= count) {
      const int packed = own.at(static_cast<std::size_t>(argument.operand - count));
      passed.push_back({packed, plan_.buffers[static_cast<std::size_t>(packed)].kind != BufferKind::constant});
      plan_.lives.touch(packed, now);
    } else {
      const auto at = static_cast<std::size_t>(argument.operand);
      passed.push_back({kernel.operands[at].buffer, kernel.operands[at].written});
      plan_.lives.touch_operand(kernel, at, now);
    }
  }
  const Args args = arguments(launch, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  copies_ += kernel.is_copy ? 1 : 0;
  return table(code, g, args, name_of(kernel.anchor), {kernel.sources, kernel.flops, kernel.bytes});
}

fb::Offset<plan::Launch> LaunchTables::several(std::string_view anchor) {
  const GeneratedLaunch& launch = generated_.at(static_cast<std::size_t>(next_++));
  const auto& all = std::get<SeveralKernels>(launch.code);
  const GeneratedKernel& g = all.kernel;
  const int now = plan_.lives.step();
  std::vector<Passed> passed;
  for (const KernelArgument& argument : g.arguments) {
    if (argument.kind == KernelArgument::Kind::dimension) {
      passed.push_back({});
      continue;
    }
    const SeveralKernels::Argument& operand = all.buffers[static_cast<std::size_t>(argument.operand)];
    plan_.lives.touch_whole(operand.buffer, now);
    passed.push_back({operand.buffer, operand.written});
  }
  const Args args = arguments(launch, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  return table(code, g, args, anchor, {all.sources, all.flops, all.bytes});
}

fb::Offset<plan::Launch> LaunchTables::ragged(const RaggedStep& group) {
  const GeneratedLaunch& launch = generated_.at(static_cast<std::size_t>(next_++));
  const auto& all = std::get<SeveralKernels>(launch.code);
  const int now = plan_.lives.step();
  const std::vector<const Kernel*> members = kernels_of(schedule_, group.body);
  for (const Kernel* member : members) {
    for (std::size_t i = 0; i < member->operands.size(); ++i) plan_.lives.touch_operand(*member, i, now);
    copies_ += member->is_copy ? 1 : 0;
  }
  pool(members);
  std::vector<Passed> passed;
  for (const KernelArgument& argument : all.kernel.arguments) {
    passed.push_back({});
    if (argument.kind != KernelArgument::Kind::operand) continue;
    const SeveralKernels::Argument& object = all.buffers[static_cast<std::size_t>(argument.operand)];
    passed.back() = {object.buffer, object.written};
  }
  const Args args = arguments(launch, passed);
  const PlacedKernel code = plan_.kernels.place(all.kernel);
  return table(code, all.kernel, args, "ragged",
               {all.sources, all.flops, all.bytes, title_of(group, schedule_), group.body.size()});
}

fb::Offset<plan::Launch> LaunchTables::horizontal_fusion(std::span<const Step> steps) {
  const GeneratedLaunch& launch = generated_.at(static_cast<std::size_t>(next_++));
  const auto& together = std::get<HorizontallyFused>(launch.code);
  const GeneratedKernel& g = together.kernel;
  const int now = plan_.lives.step();
  Work work;
  for (const Step& step : steps) {
    const Kernel& kernel = schedule_.kernel(step);
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) plan_.lives.touch_operand(kernel, i, now);
    add_sources(work.sources, kernel.sources);
    work.flops += kernel.flops;
    work.bytes += kernel.bytes;
    copies_ += kernel.is_copy ? 1 : 0;
  }
  std::vector<Passed> passed;
  for (const HorizontallyFused::Argument& a : together.buffers) passed.push_back({a.buffer, a.written});
  const Args args = arguments(launch, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  return table(code, g, args, "horizontal_fusion", work);
}

void LaunchTables::pool(std::span<const Kernel* const> members) {
  const RaggedObjects objects = RaggedObjects::of_group(schedule_, members);
  for (const Kernel* member : members) {
    for (const Operand& o : member->operands) {
      if (objects.is_pooled(o.buffer)) pooled_.insert(o.buffer);
    }
  }
}

void LaunchTables::touch_members(std::span<const Kernel* const> members, int buffer, int at) {
  plan_.lives.touch(buffer, at);
  for (const Kernel* member : members) {
    for (std::size_t i = 0; i < member->operands.size(); ++i) {
      if (member->operands[i].buffer == buffer) plan_.lives.touch_operand(*member, i, at);
    }
  }
}

fb::Offset<plan::Launch> LaunchTables::megakernel() {
  const int at = next_++;
  const GeneratedLaunch& launch = generated_.at(static_cast<std::size_t>(at));
  const auto& megakernel = std::get<MegakernelCode>(launch.code);
  const GeneratedKernel& g = megakernel.kernel;
  const auto own = static_cast<int>(schedule_.buffers.size());
  const std::vector<int>& packed = packed_of(at);
  if (progress_ < 0) {
    progress_ = static_cast<int>(plan_.buffers.size());
    plan_.buffers.push_back({"megakernel.progress", BufferKind::state, DType::i32, Expr(0), {}, -1});
  }
  Buffer& progress = plan_.buffers[static_cast<std::size_t>(progress_)];
  progress.elements = std::max(progress.elements.value(), progress_ints(megakernel.kernels));
  const auto known = [&](int number) { return number < own ? number : packed.at(static_cast<std::size_t>(number - own)); };
  const auto joined = static_cast<int>(plan_.buffers.size());
  if (!megakernel.joined.empty()) {
    plan_.buffers.push_back({"megakernel.constants", BufferKind::constant, DType::u8, Expr(megakernel.joined_bytes), {}, -1});
    for (const int number : megakernel.joined) joined_[joined].push_back(known(number));
  }
  const auto buffer_of = [&](const MegakernelCode::Argument& a) {
    return a.buffer == MegakernelCode::Argument::kProgress ? progress_
           : a.buffer == MegakernelCode::Argument::kJoined ? joined
                                                           : known(a.buffer);
  };
  std::vector<Passed> passed;
  for (const KernelArgument& argument : g.arguments) {
    passed.push_back({});
    if (argument.kind != KernelArgument::Kind::operand) continue;
    const MegakernelCode::Argument& a = megakernel.buffers[static_cast<std::size_t>(argument.operand)];
    passed.back() = {buffer_of(a), a.written};
  }
  const Args whole = arguments(launch, passed);
  const PlacedKernel code = plan_.kernels.place(g);
  std::vector<fb::Offset<plan::Part>> parts;
  Work work;
  for (const MegakernelCode::Part& part : megakernel.parts) {
    const int now = plan_.lives.step();
    if (part.instances > 0) pool(part.kernels);
    Args args;
    for (const MegakernelCode::Argument& a : part.buffers) {
      const int number = buffer_of(a);
      if (part.instances > 0) {
        touch_members(part.kernels, number, now);
      } else if (part.kernels.size() > 1) {
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
                                           part.own_kernel.empty() ? nullptr : (code.name + part.own_kernel).c_str(),
                                           static_cast<std::uint32_t>(part.instances)));
  }
  return table(code, g, whole, "megakernel", work, parts);
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
