// Training loops for C++17: an owning class over train.h that throws oclc::rt::Error.
#ifndef OCLC_TRAIN_HPP
#define OCLC_TRAIN_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "oclc/train.h"

namespace oclc::rt {

class Trainer {
 public:
  Trainer(const Session& session, std::uint32_t entry) {
    oclc_trainer* handle = nullptr;
    const oclc_status status = oclc_trainer_create(session.get(), entry, &handle);
    if (status != OCLC_OK) throw Error(status, oclc_session_cl_code(session.get()), oclc_session_message(session.get()));
    handle_.reset(handle);
  }

  oclc_trainer* get() const noexcept { return handle_.get(); }

  template <class T>
  void feed(const std::string& input, const T* data, const std::vector<std::int64_t>& shape) {
    static constexpr std::int64_t kScalar = 0;
    oclc_tensor t = OCLC_INIT(oclc_tensor);
    t.dtype = dtype_of<T>();
    t.rank = static_cast<std::uint32_t>(shape.size());
    t.shape = shape.empty() ? &kScalar : shape.data();
    t.host = const_cast<T*>(data);
    t.bytes = sizeof(T);
    for (const std::int64_t d : shape) t.bytes *= static_cast<std::uint64_t>(d);
    feed(input, t);
  }
  void feed(const std::string& input, const oclc_tensor& batch) { check(oclc_trainer_feed(get(), input.c_str(), &batch)); }
  // Memory to fill before the next step.
  void* memory(const std::string& input, oclc_dtype dtype, const std::vector<std::int64_t>& shape) {
    void* memory = nullptr;
    std::uint64_t bytes = 0;
    const auto rank = static_cast<std::uint32_t>(shape.size());
    check(oclc_trainer_memory(get(), input.c_str(), dtype, shape.data(), rank, &memory, &bytes));
    return memory;
  }
  void set(const std::string& name, double value) { check(oclc_trainer_set(get(), name.c_str(), value)); }
  std::uint64_t next_step() const { return oclc_trainer_next_step(get()); }
  void step() { check(oclc_trainer_step(get())); }
  // Results of steps that have finished since the last call; with `wait`, of all enqueued ones.
  std::vector<oclc_step_result> results(bool wait = false) {
    std::vector<oclc_step_result> all;
    oclc_step_result part[64] = {};
    part[0].size = sizeof part[0];
    for (std::uint32_t count = 64; count == 64;) {
      check(oclc_trainer_results(get(), wait, part, 64, &count));
      all.insert(all.end(), part, part + count);
    }
    return all;
  }
  std::vector<std::string> value_names() const {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; const char* name = oclc_trainer_value_name(get(), i); ++i) names.emplace_back(name);
    return names;
  }

 private:
  void check(oclc_status status) const {
    if (status != OCLC_OK) throw Error(status, 0, oclc_trainer_message(get()));
  }
  std::unique_ptr<oclc_trainer, detail::Deleter<oclc_trainer_release>> handle_;
};

}  // namespace oclc::rt

#endif  // OCLC_TRAIN_HPP
