#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "frontends/python/handles.h"

namespace oclc::python {

namespace nb = nanobind;

Trainer::Trainer(std::shared_ptr<Session> session, std::uint32_t entry) : session_(std::move(session)), entry_(entry) {
  const Session::Use use(*session_);
  session_->check(oclc_trainer_create(session_->get(), entry, &trainer_));
}

Trainer::~Trainer() {
  if (process_ == ::getpid()) oclc_trainer_release(trainer_);
}

void Trainer::check(oclc_status status) const {
  if (status != OCLC_OK) throw RuntimeError(status, 0, oclc_trainer_message(trainer_));
}

void Trainer::feed(const std::string& input, nb::handle batch) {
  const Session::Use use(*session_);
  const std::vector<Port>& ports = session_->plan().entry(entry_).inputs;
  const auto at = std::find_if(ports.begin(), ports.end(), [&](const Port& port) { return port.name == input; });
  if (at == ports.end()) throw nb::key_error(input.c_str());
  HeldTensor memory = input_tensor(batch, *at);
  const nb::gil_scoped_release released;
  check(oclc_trainer_feed(trainer_, input.c_str(), memory.get()));
}

void Trainer::set(const std::string& name, double value) {
  const Session::Use use(*session_);
  check(oclc_trainer_set(trainer_, name.c_str(), value));
}

void Trainer::step() {
  const Session::Use use(*session_);
  const nb::gil_scoped_release released;
  check(oclc_trainer_step(trainer_));
}

nb::list Trainer::results(bool wait) {
  const Session::Use use(*session_);
  constexpr std::uint32_t kPiece = 1024;
  std::vector<oclc_step_result> piece(kPiece, OCLC_INIT(oclc_step_result));
  nb::list list;
  for (std::uint32_t count = kPiece; count == kPiece;) {
    {
      const nb::gil_scoped_release released;
      check(oclc_trainer_results(trainer_, wait, piece.data(), kPiece, &count));
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      nb::list values;
      for (std::uint32_t k = 0; k < std::min<std::uint32_t>(piece[i].value_count, OCLC_STEP_VALUES); ++k)
        values.append(piece[i].values[k]);
      list.append(nb::make_tuple(piece[i].step, piece[i].loss, values));
    }
  }
  return list;
}

std::vector<std::string> Trainer::value_names() const {
  std::vector<std::string> names;
  for (std::uint32_t i = 0;; ++i) {
    const char* name = oclc_trainer_value_name(trainer_, i);
    if (!name) return names;
    names.emplace_back(name);
  }
}

void bind_trainer(nb::module_& module) {
  nb::class_<Trainer>(module, "Trainer")
      .def_static("make", [](std::shared_ptr<Session> session,
                             std::uint32_t entry) { return std::make_shared<Trainer>(std::move(session), entry); })
      .def("feed", &Trainer::feed)
      .def("set", &Trainer::set)
      .def("step", &Trainer::step)
      .def("next_step", &Trainer::next_step)
      .def("results", &Trainer::results)
      .def("value_names", &Trainer::value_names);
}

}  // namespace oclc::python
