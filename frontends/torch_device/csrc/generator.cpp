#include "frontends/torch_device/csrc/generator.h"

#include <ATen/Functions.h>
#include <ATen/Utils.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>

namespace oclc::torch_device {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

struct Philox final : c10::GeneratorImpl {
  explicit Philox(c10::DeviceIndex index)
      : GeneratorImpl(c10::Device(kType, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  void set_current_seed(std::uint64_t value) override { state = {value, 0}; }
  std::uint64_t current_seed() const override { return state.seed; }
  void set_offset(std::uint64_t value) override { state.offset = value; }
  std::uint64_t get_offset() const override { return state.offset; }
  std::uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return state.seed;
  }
  void set_state(const c10::TensorImpl& given) override {
    at::detail::check_rng_state(given);
    TORCH_CHECK(given.numel() == sizeof(Draw), "device ocl: wanted a state of ", sizeof(Draw), " bytes, found ", given.numel());
    std::memcpy(&state, given.data(), sizeof state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor bytes = at::empty({static_cast<std::int64_t>(sizeof(Draw))}, at::kByte);
    std::memcpy(bytes.data_ptr(), &state, sizeof state);
    return bytes.getIntrusivePtr();
  }
  Philox* clone_impl() const override {
    auto* copy = new Philox(device().index());
    copy->state = state;
    return copy;
  }
  Draw state{c10::default_rng_seed_val, 0};
};

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* all = [] {
    auto* made = new std::vector<at::Generator>;
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) made->push_back(new_generator(i));
    return made;
  }();
  TORCH_CHECK(index >= 0 && index < device_count(), "device ocl:", static_cast<int>(index), " is not there");
  return (*all)[static_cast<std::size_t>(index)];
}

at::Generator new_generator(c10::DeviceIndex index) { return at::make_generator<Philox>(index); }

Draw draw(const std::optional<at::Generator>& generator, c10::DeviceIndex index, std::uint64_t count) {
  at::Generator chosen = generator && generator->defined() ? *generator : default_generator(index);
  TORCH_CHECK(chosen.device().type() == kType, "device ocl: wanted a generator of the device, found one of ", chosen.device());
  const std::lock_guard lock(chosen.mutex());
  auto* philox = static_cast<Philox*>(chosen.unsafeGetGeneratorImpl());
  const Draw begin = philox->state;
  philox->state.offset += count;
  return begin;
}

}  // namespace oclc::torch_device
