#include "tools/oclc/tuned.h"

#include <fmt/format.h>

#include "compiler/support/error.h"
#include "compiler/tuning/calibration.h"
#include "tools/oclc/console.h"

namespace oclc::tool {

TunedDevice tuned_device(const oclc_device_info& device, const Target& target) {
  return {device.name, target.name, device.vendor};
}

void use_rates(const std::vector<Trial>& trials, Target& target) {
  if (!set_rates(target, calibrated_rates(trials)))
    print_warning("rates that were calibrated lie too far from the target's row; its own are taken");
}

void use_tuned(const std::string& database, const TunedDevice& device, Target& target) {
  try {
    const TuningDatabase known(database, TuningDatabase::Use::read);
    auto tuning = std::make_shared<Tuning>(known.best_for(device));
    print_note(fmt::format("{} tuned choices for {}", tuning->choices.size(), device.name.empty() ? target.name : device.name));
    target.tuning = std::move(tuning);
    use_rates(known.trials(device), target);
  } catch (const CompileError& error) {
    if (error.parts().exit_code == ExitCode::io) throw;
    print_warning(fmt::format("no tuned choices: {}", error.what()));
  }
}

}  // namespace oclc::tool
