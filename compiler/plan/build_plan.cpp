#include "compiler/plan/build_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/strings.h"
#include "compiler/ops/builder.h"
#include "compiler/plan/joined_constants.h"
#include "compiler/plan/launch_tables.h"
#include "compiler/plan/quantized_parts.h"
#include "compiler/support/error.h"
#include "plan_generated.h"

namespace oclc {
namespace {

namespace fb = flatbuffers;

class PlanBuilder {
 public:
  PlanBuilder(const Schedule& schedule, std::vector<GeneratedLaunch> launches, const PlanOptions& options)
      : schedule_(schedule),
        options_(options),
        buffers_(schedule.buffers),
        launches_(schedule, std::move(launches), {buffers_, lives_, symbols_, kernels_, builder_}) {}

  BuiltPlan run() {
    for (std::size_t i = 0; i < schedule_.entries.size(); ++i) {
      lives_.begin_entry(static_cast<int>(i));
      entries_.push_back(entry(schedule_.entries[i]));
    }
    take_initial_values();
    number_texts();
    const auto buffers = buffer_tables();
    const auto variables = variable_tables();
    const auto programs = kernels_.tables(builder_, options_.build_options);
    const auto symbols = symbols_.tables();
    std::vector<fb::Offset<fb::String>> notes;
    for (const std::string& note : options_.notes) notes.push_back(builder_.CreateString(note));
    std::vector<fb::Offset<plan::Assumption>> assumptions;
    for (const Assumption& a : options_.assumptions)
      assumptions.push_back(
          plan::CreateAssumptionDirect(builder_, symbols_.expr(a.left), symbols_.expr(a.right), a.node.c_str()));
    std::vector<fb::Offset<fb::String>> extensions;
    if (std::any_of(schedule_.kernels.begin(), schedule_.kernels.end(), uses_doubles))
      extensions.push_back(builder_.CreateString("cl_khr_fp64"));
    std::vector<fb::Offset<plan::Property>> metadata;
    for (const Property& p : options_.metadata)
      metadata.push_back(plan::CreatePropertyDirect(builder_, p.name.c_str(), p.value.c_str()));
    const auto device_class = options_.device_class == DeviceClass::cpu ? plan::DeviceClass::cpu : plan::DeviceClass::gpu;
    builder_.Finish(plan::CreatePlanDirect(builder_, schedule_.model.c_str(), OCLC_VERSION, options_.target.c_str(),
                                           options_.precision.c_str(), &notes, &extensions, &symbols, &buffers, &programs,
                                           &entries_, &variables, 0, &texts_, assumptions.empty() ? nullptr : &assumptions,
                                           device_class, metadata.empty() ? nullptr : &metadata));
    plan_.metadata.assign(builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize());
    plan_.files = std::move(kernels_.files());
    plan_.launches = launches_.launches();
    plan_.copies = launches_.copies();
    return std::move(plan_);
  }

 private:
  fb::Offset<plan::Host> host(const HostCall& call) {
    const int now = lives_.step();
    const auto operands = [&](const std::vector<HostOperand>& list, bool written) {
      std::vector<fb::Offset<plan::HostOperand>> out;
      for (const HostOperand& o : list) {
        lives_.touch_whole(o.buffer, now);
        const auto at = plan::CreateArg(builder_, plan::ArgKind::buffer, o.buffer, symbols_.expr(o.offset), written);
        const auto shape = symbols_.exprs(o.shape);
        out.push_back(plan::CreateHostOperandDirect(builder_, at, &shape));
      }
      return out;
    };
    const auto inputs = operands(call.inputs, false), outputs = operands(call.outputs, true);
    const auto texts = plan_texts(builder_, call.texts), nodes = plan_texts(builder_, call.sources);
    return plan::CreateHostDirect(builder_, call.op.c_str(), &call.integers, &texts, &inputs, &outputs, &nodes);
  }

  // Takes no schedule index: it is done before the next launch is enqueued.
  fb::Offset<plan::Read> reading(const Reading& r) {
    lives_.touch(r.buffer, std::max(lives_.next_step() - 1, 0));
    std::vector<int> dims;
    for (const Expr& d : r.dims) dims.push_back(static_cast<int>(symbols_.index(*d.symbol_name())));
    const auto nodes = plan_texts(builder_, r.sources);
    return plan::CreateReadDirect(builder_, plan::CreateArg(builder_, plan::ArgKind::buffer, r.buffer, symbols_.expr(r.offset)),
                                  &dims, &nodes);
  }

  fb::Offset<plan::Step> launch(const fb::Offset<plan::Launch>& body) {
    return plan::CreateStep(builder_, plan::StepBody::Launch, body.Union());
  }

  fb::Offset<plan::Step> of(const KernelStep& step) { return launch(launches_.single(step)); }
  fb::Offset<plan::Step> of(const MegakernelStep& /*step*/) { return launch(launches_.megakernel()); }
  fb::Offset<plan::Step> of(const RaggedStep& group) { return launch(launches_.ragged(group)); }
  fb::Offset<plan::Step> of(const LoopKernelStep& /*step*/) { return launch(launches_.several("loop_kernel")); }
  fb::Offset<plan::Step> of(const WorkGroupStep& /*step*/) { return launch(launches_.several("work_group")); }
  fb::Offset<plan::Step> of(const AttentionStep& /*step*/) { return launch(launches_.several("attention")); }
  fb::Offset<plan::Step> of(const ParallelLoopsStep& /*step*/) {
    OCLC_CHECK(false, "loops of work-groups of their own stand outside of a megakernel");
  }

  fb::Offset<plan::Step> of(const GemmStep& step) {
    const auto body = launches_.blas(schedule_.gemms[static_cast<std::size_t>(step.gemm)]);
    return plan::CreateStep(builder_, plan::StepBody::BlasGemm, body.Union());
  }

  fb::Offset<plan::Step> of(const ReadingStep& step) {
    const auto body = reading(schedule_.readings[static_cast<std::size_t>(step.reading)]);
    return plan::CreateStep(builder_, plan::StepBody::Read, body.Union());
  }

  fb::Offset<plan::Step> of(const HostStep& step) {
    const auto body = host(schedule_.hosts[static_cast<std::size_t>(step.host)]);
    return plan::CreateStep(builder_, plan::StepBody::Host, body.Union());
  }

  fb::Offset<plan::Step> of(const LoopStep& loop) {
    const int begin = lives_.next_step();
    const auto body = steps(loop.body);
    lives_.add_loop(begin, loop.body);
    const auto made =
        plan::CreateLoopDirect(builder_, symbols_.expr(loop.trip), static_cast<int>(symbols_.index(loop.counter)), &body,
                               loop.condition.empty() ? -1 : static_cast<int>(symbols_.index(loop.condition)));
    return plan::CreateStep(builder_, plan::StepBody::Loop, made.Union());
  }

  std::vector<fb::Offset<plan::Step>> steps(std::span<const Step> list) {
    std::vector<fb::Offset<plan::Step>> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Step& step = list[i];
      const std::span<const Step> rest = list.subspan(i);
      if (const std::size_t together = steps_of_launch(rest); together > 1) {
        out.push_back(launch(launches_.horizontal_fusion(rest.first(together))));
        i += together - 1;
        continue;
      }
      out.push_back(std::visit([&](const auto& form) { return of(form); }, step.form));
    }
    return out;
  }

  fb::Offset<plan::Entry> entry(const EntrySchedule& e) {
    const auto body = steps(e.steps);
    lives_.extend_over_loops();
    const auto bindings = [&](const std::vector<std::pair<std::string, TensorType>>& list, const std::vector<int>& ids) {
      std::vector<fb::Offset<plan::Binding>> out;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto shape = symbols_.exprs(list[i].second.shape);
        const auto limit = std::find_if(options_.limits.begin(), options_.limits.end(), [&](const InputLimit& known) {
          return &list == &e.inputs && known.input == list[i].first;
        });
        const bool limited = limit != options_.limits.end();
        out.push_back(plan::CreateBindingDirect(builder_, plan_text(list[i].first).c_str(),
                                                static_cast<plan::DType>(list[i].second.dtype), &shape, ids[i],
                                                limited ? limit->limit : 0, limited ? &limit->also : nullptr));
      }
      return out;
    };
    const auto inputs = bindings(e.inputs, e.input_buffers), outputs = bindings(e.outputs, e.output_buffers);
    return plan::CreateEntryDirect(builder_, e.name.c_str(), &inputs, &outputs, &body);
  }

  // Texts of constants get the plan's numbers, in order of appearance.
  void number_texts() {
    if (std::none_of(buffers_.begin(), buffers_.end(), [](const Buffer& b) { return b.dtype == DType::string; })) return;
    std::unordered_map<std::int64_t, std::int64_t> numbers;
    const auto number = [&](std::int64_t known) {
      const auto [at, is_new] = numbers.emplace(known, static_cast<std::int64_t>(numbers.size()));
      if (is_new) texts_.push_back(builder_.CreateString(string_text(known)));
      return at->second;
    };
    number(0);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].dtype != DType::string || buffers_[i].kind != BufferKind::constant ||
          lives_.of(static_cast<int>(i)).first < 0)
        continue;
      const HostTensor& old = buffers_[i].constant;
      HostTensor numbered(DType::string, old.shape());
      for (std::int64_t k = 0; k < old.elements(); ++k) numbered.set_int(k, number(old.int_at(k)));
      buffers_[i].constant = std::move(numbered);
    }
  }

  void take_initial_values() {
    for (const ScheduledState& state : schedule_.states) {
      if (state.variable.initial.elements() > 0 && state.variable.initial.data())
        initial_.emplace(state.buffer, &state.variable.initial);
    }
  }

  // What users and checkpoints name: the parts of each state, or the state itself.
  std::vector<fb::Offset<plan::Variable>> variable_tables() {
    std::vector<fb::Offset<plan::Variable>> out;
    const auto add = [&](const std::string& name, const Shape& shape, const ScheduledState& state, std::int64_t offset) {
      const auto sizes = symbols_.exprs(shape);
      const std::string& carried = state.variable.carried_from;
      out.push_back(plan::CreateVariableDirect(builder_, name.c_str(), static_cast<plan::DType>(state.variable.type.dtype),
                                               &sizes, state.buffer, offset, carried.empty() ? nullptr : carried.c_str()));
    };
    for (const ScheduledState& state : schedule_.states) {
      if (state.variable.parts.empty()) add(state.variable.name, state.variable.type.shape, state, 0);
      for (const StatePart& part : state.variable.parts)
        add(part.name, Shape(part.shape.begin(), part.shape.end()), state, part.offset);
    }
    return out;
  }

  // Where a table of these pieces, one after another, begins. `places`: the pieces' offsets, by buffer.
  std::uint64_t add_joined(const std::vector<int>& pieces, std::vector<std::uint64_t>& places) {
    const std::vector<std::uint64_t> at = tables_.place(pieces, plan_.constants, [&](int piece) {
      StoredConstant constant = StoredConstant::of(buffers_[static_cast<std::size_t>(piece)]);
      plan_.owned.push_back(constant.tensor);
      return constant;
    });
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (lives_.of(pieces[i]).first < 0) places[static_cast<std::size_t>(pieces[i])] = at[i];  // else it has a copy of its own
    return at.front();
  }

  // Fills the constant section in the buffers' order. Returns where each buffer's values lie in it: those of a piece of a
  // megakernel's table within that table.
  std::vector<std::uint64_t> place_constants() {
    std::vector<std::uint64_t> places(buffers_.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& buffer = buffers_[i];
      const auto initial = initial_.find(static_cast<int>(i));
      if (const auto pieces = launches_.joined().find(static_cast<int>(i)); pieces != launches_.joined().end()) {
        places[i] = add_joined(pieces->second, places);
      } else if ((buffer.kind == BufferKind::constant && lives_.of(static_cast<int>(i)).first >= 0) ||
                 initial != initial_.end()) {
        StoredConstant constant = initial == initial_.end() ? StoredConstant::of(buffer) : StoredConstant::of(*initial->second);
        places[i] = plan_.constants.add({constant.tensor->data(), constant.tensor->bytes()}, std::move(constant.parts));
        plan_.owned.push_back(std::move(constant.tensor));
      }
    }
    return places;
  }

  std::vector<fb::Offset<plan::Buffer>> buffer_tables() {
    const std::vector<std::uint64_t> places = place_constants();
    std::vector<fb::Offset<plan::Buffer>> out;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& buffer = buffers_[i];
      const Life life = lives_.of(static_cast<int>(i));
      const bool used = life.first >= 0;
      const Expr bytes = used || buffer.kind != BufferKind::constant
                             ? buffer.elements * Expr(static_cast<std::int64_t>(size_bytes(buffer.dtype)))
                             : Expr(0);
      const bool arena = buffer.kind == BufferKind::arena;
      const std::vector<plan::Piece> parts = arena && used ? lives_.pieces(static_cast<int>(i)) : std::vector<plan::Piece>();
      out.push_back(plan::CreateBufferDirect(
          builder_, buffer.name.c_str(), static_cast<plan::BufferKind>(buffer.kind), static_cast<plan::DType>(buffer.dtype),
          symbols_.expr(arena && !used ? Expr(0) : bytes), places[i], initial_.count(static_cast<int>(i)) != 0,
          arena ? std::max(life.entry, 0) : -1, std::max(life.first, 0), std::max(life.last, 0), -1,
          parts.empty() ? nullptr : &parts, launches_.pooled().count(static_cast<int>(i)) != 0));
    }
    return out;
  }

  const Schedule& schedule_;
  const PlanOptions& options_;
  std::vector<Buffer> buffers_;
  BufferLives lives_{schedule_, buffers_};
  std::unordered_map<int, const HostTensor*> initial_;  // by state buffer
  BuiltPlan plan_;
  fb::FlatBufferBuilder builder_{1 << 20};
  PlanSymbols symbols_{schedule_, builder_};
  std::vector<fb::Offset<plan::Entry>> entries_;
  std::vector<fb::Offset<fb::String>> texts_;
  PlacedKernels kernels_;
  LaunchTables launches_;
  JoinedConstants tables_;
};

}  // namespace

BuiltPlan build_plan(const Schedule& schedule, std::vector<GeneratedLaunch> launches, const PlanOptions& options) {
  return PlanBuilder(schedule, std::move(launches), options).run();
}

}  // namespace oclc
