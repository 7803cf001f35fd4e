// One plan on one device, run on host tensors.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "tools/io/tensor.h"

namespace oclc::oclrun {

using Dims = std::vector<std::pair<std::string, std::int64_t>>;

class Runner {
 public:
  Runner(const rt::Plan& plan, const rt::Context& context, const std::string& entry);

  std::uint32_t entry() const { return entry_; }
  const std::string& entry_name() const { return entry_name_; }
  const std::vector<oclc_binding_info>& inputs() const { return inputs_; }
  const std::vector<oclc_binding_info>& outputs() const { return outputs_; }
  rt::Session& session() { return session_; }
  const rt::Plan& plan() const { return plan_; }

  // Binds the dims (those of an earlier call are forgotten), then the inputs in the plan's order, then outputs of the size that
  // follows. A tensor of another element type is refused by the runtime. Throws rt::Error.
  void bind(const Dims& dims, std::vector<io::Tensor> inputs);
  void run();

  // After run(), in the plan's order.
  const std::vector<io::Tensor>& results() const { return results_; }
  // Shape of input `index` for these dims and the inputs bound so far.
  std::vector<std::int64_t> input_shape(std::uint32_t index);
  // Throws UsageError naming --dim if `error` is of a dimension without a value, else `error` again.
  [[noreturn]] void explain(const rt::Error& error) const;
  void bind_dims(const Dims& dims);
  void bind_input(std::uint32_t index, io::Tensor tensor);
  void bind_outputs();
  // Inputs of another size would contradict those that are bound while they are exchanged one by one.
  void forget_inputs();

 private:
  const rt::Plan& plan_;
  std::uint32_t entry_;
  std::string entry_name_;
  std::vector<oclc_binding_info> inputs_;
  std::vector<oclc_binding_info> outputs_;
  rt::Session session_;
  Dims dims_;
  std::vector<io::Tensor> bound_;
  std::vector<io::Tensor> results_;
  std::vector<std::size_t> rooms_;  // bytes of `results_` while running, when their shapes are not known yet
};

// The entry point's index: `name`, else predict, else the only one.
std::uint32_t choose_entry(const rt::Plan& plan, const std::string& name);

// "N=1 T=8".
std::string dims_text(const Dims& dims);

}  // namespace oclc::oclrun
