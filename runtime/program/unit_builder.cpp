#include "runtime/program/unit_builder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "runtime/device/amx.h"
#include "runtime/device/cpu_features.h"
#include "runtime/device/quirks.h"
#include "runtime/device/sm90a.h"
#include "runtime/failure.h"
#include "runtime/package/package.h"
#include "runtime/program/build_lock.h"
#include "runtime/program/late_start.h"
#include "runtime/program/program_binary.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// Plans reckon with IEEE division and square roots, which drivers may leave to those who ask.
constexpr const char* kExactDivision = " -cl-fp32-correctly-rounded-divide-sqrt";

bool divides_exactly_if_asked(cl_device_id device) {
  cl_device_fp_config config = 0;
  return clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, nullptr) == CL_SUCCESS &&
         (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
}

// Programs write instructions of NVIDIA's devices under `#if OCLC_NV_SM >= 80`, and what any device computes beside them.
constexpr std::string_view kNvidiaMacro = "OCLC_NV_SM", kNvidiaOption = " -DOCLC_NV_SM=";

// The option that defines the macro as ten times the compute capability; empty on other devices.
std::string nvidia_option(cl_device_id device) {
  const unsigned capability = compute_capability(device);
  return capability == 0 ? "" : std::string(kNvidiaOption) + std::to_string(capability);
}

// Programs write products of GPUs' matrix units on 16-bit operands beside what any device computes. The environment variable
// OCLC_UNITS, read each time: `emulate` takes the former with the unit's part in plain C.
constexpr std::string_view kUnitsMacro = "OCLC_UNITS_EMULATED";

bool emulates_units() {
  const char* wish = std::getenv("OCLC_UNITS");
  return wish && std::string_view(wish) == "emulate";
}

// Removes an option as it was added; false if it is not there.
bool drop_option(std::string& options, std::string_view option) {
  const std::size_t at = (options + ' ').find(std::string(option) + ' ');
  if (at == options.npos) return false;
  options.erase(at, option.size());
  return true;
}

// Removes that option; false if it is not there.
bool drop_nvidia_option(std::string& options) {
  const std::size_t at = options.find(kNvidiaOption);
  if (at == options.npos) return false;
  options.erase(at, options.find(' ', at + 1) - at);
  return true;
}

BuildLock lock_for(Context& context, const Unit& unit) {
  return has(context.quirks(), Quirk::races_on_disk) ? BuildLock(unit.options, unit.source) : BuildLock();
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string log(bytes, '\0');
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr) != CL_SUCCESS) return "";
  log.resize(std::min(log.find('\0'), log.size()));
  return log;
}

std::string first_lines(const std::string& text, int lines, std::size_t limit) {
  std::size_t end = 0;
  for (int i = 0; i < lines && end != text.npos; ++i) end = text.find('\n', end + (i > 0));
  return text.substr(0, std::min(end, limit));
}

std::uint64_t nanoseconds_since(std::chrono::steady_clock::time_point begin) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
}

std::string device_key(const oclc_device_info& f) {
  return std::string("oclc ") + OCLC_VERSION + '\n' + f.platform_name + '\n' + f.platform_version + '\n' + f.vendor + '\n' +
         f.name + '\n' + f.driver + '\n' + f.version + '\n';
}

class UnitBuilder {
 public:
  explicit UnitBuilder(Context& context) : context_(context), device_key_(device_key(context.facts())) {}

  // Builds every unit; a unit's failure is kept in it. Builders are given those that are for them, and started when what this
  // process builds first is not done at once.
  void build_all(std::vector<Unit>& units, unsigned threads, const MakeBuilders& builders, std::chrono::milliseconds patience) {
    begin(units.size());
    if (builders && std::any_of(units.begin(), units.end(), [](const Unit& u) { return u.for_builders; })) {
      build_beside(units, threads, builders, patience);
    } else {
      std::vector<Unit*> all;
      for (Unit& unit : units) all.push_back(&unit);
      build_some(all, threads);
    }
  }

  // In one thread: what NVIDIA's driver builds in several of a process takes longer by about as much.
  void build_queued(std::vector<Unit>& units, BuildQueue& queue, std::chrono::milliseconds patience) {
    begin(units.size());
    std::optional<LateStart> late;
    if (patience.count() == 0)
      queue.start();
    else
      late.emplace(patience, [&] { queue.start(); });
    while (const auto taken = queue.next()) {
      Unit& unit = units[taken->unit];
      unit.for_builders = taken->is_on_disk;
      build_next(unit);
    }
  }

  // Adds what depends on the device.
  void complete_options(std::vector<Unit>& units) {
    if (divides_exactly_if_asked(context_.device())) {
      for (Unit& unit : units) unit.options += kExactDivision;
    }
    if (const std::string nvidia = nvidia_option(context_.device()); !nvidia.empty()) {
      for (Unit& unit : units) {
        if (unit.source.find(kNvidiaMacro) != std::string::npos) unit.options += nvidia;
      }
    }
    if (emulates_units()) {
      for (Unit& unit : units) {
        if (unit.source.find(kUnitsMacro) != std::string::npos) unit.options += " -D" + std::string(kUnitsMacro);
      }
    }
    take_amx(units);
  }

  std::string key_of(const Unit& unit, std::string_view more_options = "") const {
    return device_key_ + unit.options + std::string(more_options) + '\n' + unit.source;
  }

  // A program of the binary, or what the driver says against it.
  cl_int take(const Unit& unit, std::span<const unsigned char> binary, ClProgram& program) {
    return build_binary(context_.cl(), context_.device(), binary, unit.options, program);
  }

 private:
  void begin(std::size_t units) {
    done_ = 0;
    total_ = static_cast<std::uint32_t>(units);
    context_.progress(0, total_);
  }

  void build_next(Unit& unit) {
    build(unit);
    context_.progress(++done_, total_);
  }

  void build_some(const std::vector<Unit*>& units, unsigned threads) {
    if (threads > 1 && units.size() > 1)
      build_in_threads(units, threads);
    else
      for (Unit* unit : units) build_next(*unit);
  }

  void build_in_threads(const std::vector<Unit*>& units, unsigned threads) {
    std::atomic<std::size_t> next{0};
    std::size_t done = 0;
    std::mutex mutex;
    std::condition_variable changed;
    const auto work = [&] {
      for (std::size_t i; (i = next++) < units.size();) {
        build(*units[i]);
        const std::lock_guard lock(mutex);
        ++done;
        changed.notify_one();
      }
    };
    std::vector<std::jthread> pool;
    for (std::size_t t = 0; t < std::min<std::size_t>(threads, units.size()); ++t) pool.emplace_back(work);
    std::unique_lock lock(mutex);
    for (std::size_t told = 0; told < units.size();) {
      changed.wait(lock, [&] { return done > told; });
      done_ += static_cast<std::uint32_t>(done - told);
      told = done;
      lock.unlock();
      context_.progress(done_, total_);
      lock.lock();
    }
  }

  // What builders have built, the driver finds on disk.
  void build_beside(std::vector<Unit>& units, unsigned threads, const MakeBuilders& make, std::chrono::milliseconds patience) {
    std::shared_ptr<Builders> builders;
    std::vector<Unit*> own, theirs;
    for (Unit& unit : units) (unit.for_builders ? theirs : own).push_back(&unit);
    if (patience.count() == 0) {
      builders = make();
      build_some(own, threads);
    } else {
      LateStart late(patience, [&] { builders = make(); });
      build_some(own, threads);
    }
    for (Unit* unit : theirs) {
      if (builders) builders->wait_for_unit(static_cast<std::uint32_t>(unit - units.data()), {});
      if (threads == 1) build_next(*unit);
    }
    if (threads > 1) build_some(theirs, threads);
  }

  // Chooses the branch of programs for tile units: one for all.
  void take_amx(std::vector<Unit>& units) {
    if (std::none_of(units.begin(), units.end(), [](const Unit& u) { return u.instructions == fb::Instructions::amx; })) return;
    const bool cpu = context_.facts().device_class == OCLC_DEVICE_CPU;
    AmxUse use = cpu ? amx_use() : AmxUse{"", "it is no CPU"};
    if (use.option == kAmxOption && has(context_.quirks(), Quirk::no_tile_assembly))
      use = {"", "its compiler takes no AMX instructions"};
    if (!use.refusal.empty())
      context_.message(OCLC_NOTE, std::string("the plan was compiled for AMX tiles; device '") + context_.facts().name +
                                      "' runs it without them: " + use.refusal);
    for (Unit& unit : units) {
      if (unit.instructions == fb::Instructions::amx) unit.options += use.option;
    }
  }

  void build(Unit& unit) {
    const auto begin = std::chrono::steady_clock::now();
    build_timed(unit);
    unit.build_ns = nanoseconds_since(begin);
  }

  void build_timed(Unit& unit) {
    const BuildLock lock = lock_for(context_, unit);
    try {
      if (takes_sm90a(context_, unit) && build_sm90a(unit)) return;
      const std::string key = key_of(unit);
      if (load(unit, key)) return;
      compile(unit, key);
      save(unit, key);
    } catch (const Failure& failure) {
      unit.failure = failure;
    } catch (const std::bad_alloc&) {
      unit.failure = Failure(OCLC_E_MEMORY, "the host is out of memory");
    } catch (const std::exception& error) {
      unit.failure = Failure(OCLC_E_INTERNAL, error.what());
    }
  }

  // Nothing of it is left where the driver refuses: the source has a portable branch.
  bool build_sm90a(Unit& unit) {
    const std::string options = unit.options;
    unit.options += kSm90aOption;
    const std::string key = key_of(unit);
    try {
      if (load(unit, key)) return true;
      compile(unit, key);
      const std::vector<unsigned char> binary = binary_of(unit.built.get());
      const std::string ptx = lifted_to_sm90a({reinterpret_cast<const char*>(binary.data()), binary.size()});
      if (ptx.empty()) throw Failure(OCLC_E_BUILD, "its binary is no PTX for sm_90");
      const auto* data = reinterpret_cast<const unsigned char*>(ptx.data());
      ClProgram program;
      if (const cl_int code = take(unit, {data, ptx.size()}, program); code != CL_SUCCESS)
        throw Failure(OCLC_E_BUILD, cl_error_text(code) + ", " + (program ? build_log(program.get(), context_.device()) : ""));
      unit.built = std::move(program);
      save(unit, key);
      return true;
    } catch (const Failure& failure) {
      unit.options = options;
      context_.warn_later("device '" + std::string(context_.facts().name) + "' does not take sm_90a instructions, program '" +
                          unit.name + "' runs without them: " + first_lines(failure.what(), 4, 500));
      return false;
    }
  }

  // A binary that the driver refuses is made anew from source.
  bool load(Unit& unit, const std::string& key) {
    if (!context_.cache()) return false;
    const auto binary = context_.cache()->load(key);
    if (!binary) return false;
    ClProgram program;
    if (const cl_int code = take(unit, *binary, program); code != CL_SUCCESS) {
      context_.cache()->refused(key, cl_error_text(code));
      return false;
    }
    unit.built = std::move(program);
    unit.from_cache = true;
    return true;
  }

  void compile(Unit& unit, const std::string& key) {
    const cl_device_id device = context_.device();
    cl_int code = CL_SUCCESS;
    for (int attempt = 0;; ++attempt) {
      const char* text = unit.source.data();
      const std::size_t bytes = unit.source.size();
      ClProgram program(clCreateProgramWithSource(context_.cl(), 1, &text, &bytes, &code));
      check_cl(code, "creating program '" + unit.name + "'");
      code = clBuildProgram(program.get(), 1, &device, unit.options.c_str(), nullptr, nullptr);
      if (code == CL_SUCCESS) {
        unit.built = std::move(program);
        return;
      }
      if (drop_nvidia_option(unit.options)) {
        context_.warn_later("program '" + unit.name + "': device '" + context_.facts().name +
                            "' refuses the instructions of its matrix units (" + cl_error_text(code) +
                            "); it is built without them\n" + first_lines(build_log(program.get(), device), 3, 300));
        attempt = -1;
        continue;
      }
      if (drop_option(unit.options, kAmxOption)) {
        context_.warn_later("program '" + unit.name + "': the compiler of device '" + context_.facts().name +
                            "' refuses AMX instructions (" + cl_error_text(code) + "); it is built without them\n" +
                            first_lines(build_log(program.get(), device), 3, 300));
        attempt = -1;
        continue;
      }
      if (attempt == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      fail(unit, key, code, build_log(program.get(), device));
    }
  }

  [[noreturn]] void fail(const Unit& unit, const std::string& key, cl_int code, const std::string& log) {
    std::string message = "program '" + unit.name + "' does not build on device '" + context_.facts().name +
                          "': " + cl_error_text(code) + "\n" +
                          first_lines(log.empty() ? "the driver gave no log" : log, 8, 1000);
    if (context_.cache()) {
      const std::string source = context_.cache()->write_log(key, "cl", unit.source);
      const std::string full = context_.cache()->write_log(key, "log", log);
      if (!full.empty()) message += "\nthe whole log is in " + full + (source.empty() ? "" : ", the source in " + source);
    }
    throw Failure(OCLC_E_BUILD, message, code);
  }

  void save(const Unit& unit, const std::string& key) {
    if (!context_.cache() || !context_.cache()->enabled()) return;
    const std::vector<unsigned char> binary = binary_of(unit.built.get());
    if (!binary.empty()) context_.cache()->store(key, binary);
  }

  Context& context_;
  const std::string device_key_;
  std::uint32_t done_ = 0, total_ = 0;
};

}  // namespace

std::string device_text(Context& context) {
  const bool cpu = context.facts().device_class == OCLC_DEVICE_CPU;
  return device_key(context.facts()) + (cpu ? cpu_features() + '\n' : "");
}

std::string take_binary(Context& context, Unit& unit, std::span<const unsigned char> binary) {
  const auto begin = std::chrono::steady_clock::now();
  const BuildLock lock = lock_for(context, unit);
  ClProgram program;
  if (const cl_int code = UnitBuilder(context).take(unit, binary, program); code != CL_SUCCESS) return cl_error_text(code);
  unit.built = std::move(program);
  unit.from_plan = true;
  unit.build_ns = nanoseconds_since(begin);
  return {};
}

void complete_options(Context& context, std::vector<Unit>& units) { UnitBuilder(context).complete_options(units); }

bool takes_sm90a(Context& context, const Unit& unit) {
  return unit.instructions == fb::Instructions::sm90a && has_sm90a(context.device());
}

std::string unit_key(Context& context, const Unit& unit) {
  return UnitBuilder(context).key_of(unit, takes_sm90a(context, unit) ? kSm90aOption : "");
}

void build_units(Context& context, std::vector<Unit>& units, unsigned threads, const MakeBuilders& builders,
                 std::chrono::milliseconds patience) {
  UnitBuilder(context).build_all(units, threads, builders, patience);
}

void build_units(Context& context, std::vector<Unit>& units, BuildQueue& queue, std::chrono::milliseconds patience) {
  UnitBuilder(context).build_queued(units, queue, patience);
}

}  // namespace oclc::runtime
