// fuzz_ops: random models of one operator and random graphs, compiled and run, beside the reference. See tests/fuzz/README.md.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "compiler/support/error.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/support_table.h"
#include "tests/support/run_plan.h"
#include "tools/oclc/commands/worker_pool.h"
#include "tools/oclc/failure.h"

namespace oclc::fuzz {
namespace {

// PoCL 3.1 keeps every kernel mapped that ran in a process, and the system allows a process 65,530 mappings: 600 graphs.
constexpr std::size_t kMostJobs = 200;

struct Options {
  std::uint64_t seed = 1;
  std::int64_t models = 1000, graphs = 100, from_model = 0, from_graph = 0, batch = 20, jobs = 2, only = -1;
  std::string filter, disable, out = "fuzz-failures", write_table, check_table;
  double timeout_s = 300;
  bool verbose = false;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "-v") {
      o.verbose = true;
      continue;
    }
    if (i + 1 == argc) tool::usage_error("a value after " + name);
    const std::string value = argv[++i];
    if (name == "--seed")
      o.seed = std::stoull(value);
    else if (name == "--models")
      o.models = std::stoll(value);
    else if (name == "--graphs")
      o.graphs = std::stoll(value);
    else if (name == "--from-model")
      o.from_model = std::stoll(value);
    else if (name == "--from-graph")
      o.from_graph = std::stoll(value);
    else if (name == "--batch")
      o.batch = std::stoll(value);
    else if (name == "--jobs")
      o.jobs = std::stoll(value);
    else if (name == "--only")
      o.only = std::stoll(value);
    else if (name == "--filter")
      o.filter = value;
    else if (name == "--disable")
      o.disable = value;
    else if (name == "--out")
      o.out = value;
    else if (name == "--write-table")
      o.write_table = value;
    else if (name == "--check-table")
      o.check_table = value;
    else if (name == "--device")
      setenv("OCLC_TEST_DEVICE", value.c_str(), 1);  // what run_plan reads, in every child too
    else if (name == "--timeout")
      o.timeout_s = std::stod(value);
    else
      tool::usage_error("unknown option " + name);
  }
  return o;
}

std::vector<Spec> chosen_specs(const Options& o) {
  std::vector<Spec> specs;
  for (const Spec& spec : all_specs()) {
    if (o.filter.empty() || ("," + o.filter + ",").find("," + std::string(spec.op) + ",") != std::string::npos)
      specs.push_back(spec);
  }
  if (specs.empty()) tool::usage_error("--filter names no operator");
  return specs;
}

// One line of a job's answer: a kind, an operator or what was checked, a text.
std::string line(char kind, const std::string& what, std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return fmt::format("{}\t{}\t{}\n", kind, what, text);
}

std::uint64_t seed_of(const Options& o, std::uint64_t kind, std::uint64_t index) {
  return Random(o.seed * 1000003 + kind).next() ^ Random(index + 77).next();
}

// Of each eight plans one is not fused, one has a launch a kernel and one runs no megakernels.
CompileOptions options_of(const Options& o, std::uint64_t index) {
  CompileOptions options = test::default_options();
  if (!o.disable.empty()) {
    std::stringstream names(o.disable);
    for (std::string name; std::getline(names, name, ',');) options.disabled.push_back(name);
  } else if (index % 8 == 3) {
    options.disabled = {"fuse"};
  } else if (index % 8 == 5) {
    options.disabled = {"loop_kernel"};
  }
  return options;
}

struct Picked {
  std::int64_t opset;
  std::vector<const Spec*> specs;
};

// The operators of a batch. All have an opset in common.
Picked pick(const Options& o, const std::vector<Spec>& specs, std::uint64_t batch) {
  Random r(seed_of(o, 1, batch));
  Picked p;
  for (;;) {
    p.opset = r.chance(0.25) ? r.integer(7, 16) : r.chance(0.3) ? 23 : r.integer(17, 23);
    std::vector<const Spec*> fitting;
    for (const Spec& spec : specs) {
      if (spec.since <= p.opset && p.opset <= spec.until) fitting.push_back(&spec);
    }
    if (fitting.empty()) continue;
    for (std::int64_t i = 0; i < o.batch; ++i) p.specs.push_back(r.pick(fitting));
    return p;
  }
}

std::string failed(const Options& o, const std::string& what, const Case& c, const std::string& text) {
  write_case(c, std::filesystem::path(o.out) / what, text);
  return line('F', what, text);
}

std::string run_batch(const Options& o, const std::vector<Spec>& specs, std::uint64_t batch, bool alone) {
  const Picked picked = pick(o, specs, batch);
  const CompileOptions options = options_of(o, batch);
  std::string out;
  std::vector<Single> singles;
  for (std::size_t i = 0; i < picked.specs.size(); ++i) {
    const std::uint64_t index = batch * static_cast<std::uint64_t>(o.batch) + i;
    if (o.only >= 0 && index != static_cast<std::uint64_t>(o.only)) continue;
    Single s = random_single(seed_of(o, 2, index), picked.opset, *picked.specs[i], fmt::format("m{}_", index));
    const std::string what = fmt::format("{}_{}_{}", s.op, o.seed, index);
    out += line('N', s.op, s.fixed ? "fixed" : "");
    if (!s.failure.empty()) out += failed(o, what, s.model, s.failure);
    if (!s.refusal.empty()) out += line('R', s.op, s.refusal);
    if (s.failure.empty() && s.refusal.empty()) singles.push_back(std::move(s));
  }
  if (singles.empty()) return out;
  std::vector<const Case*> cases;
  for (const Single& s : singles) cases.push_back(&s.model);
  const std::string text = alone ? "alone" : check(joined(cases), options);
  if (text.empty()) return out;
  bool found = false;
  for (const Single& s : singles) {
    const std::string own = check(s.model, options);
    if (own.empty()) continue;
    found = true;
    out += failed(o, fmt::format("{}_{}_{}", s.op, o.seed, s.model.results.at(0).name), s.model, own);
  }
  if (!found && !alone) out += failed(o, fmt::format("batch_{}_{}", o.seed, batch), joined(cases), text);
  return out;
}

std::string run_graph(const Options& o, const std::vector<Spec>& specs, std::uint64_t index) {
  RandomGraph g = random_graph_model(seed_of(o, 3, index), specs);
  std::string out = line('G', "graph", g.symbolic ? "symbolic" : "");
  for (const std::string& op : g.ops) out += line('U', op, "");
  for (const Single& s : g.broken) {
    if (!s.failure.empty()) out += failed(o, fmt::format("{}_{}_g{}", s.op, o.seed, index), s.model, s.failure);
    if (!s.refusal.empty()) out += line('R', s.op, s.refusal);
  }
  const std::string what = fmt::format("graph_{}_{}", o.seed, index);
  try {
    const std::unique_ptr<Module> module = import_case(g.model);
    const std::vector<HostTensor> wanted = reference(*module, g.model);
    for (std::size_t i = 0; i < wanted.size(); ++i) g.model.results.at(i).wanted = wanted[i];
  } catch (const std::exception& error) {
    return out + failed(o, what, g.model, error.what());
  }
  std::string text = check(g.model, options_of(o, index));
  if (text.empty() && o.disable.empty() && index % 4 == 0) {
    CompileOptions unfused = test::default_options();
    unfused.disabled = {"fuse"};
    text = check(g.model, unfused);
    if (!text.empty()) text = "not fused: " + text;
  }
  return text.empty() ? out : out + failed(o, what, g.model, text);
}

int write_or_check_table(const Options& o) {
  const std::string wanted = support_table();
  if (!o.write_table.empty()) {
    if (!(std::ofstream(o.write_table) << wanted << std::flush)) tool::io_error(o.write_table, "cannot write", errno);
    return 0;
  }
  std::ifstream in(o.check_table);
  std::stringstream wanted_lines(wanted);
  std::string found, line;
  int number = 0;
  while (std::getline(wanted_lines, line)) {
    ++number;
    if (std::getline(in, found) && found == line) continue;
    std::cout << fmt::format("{}:{}: wanted\n{}\nfound\n{}\nrefresh it: fuzz_ops --write-table docs/operators.md\n",
                             o.check_table, number, line, found);
    return 7;
  }
  if (!std::getline(in, found)) return 0;
  std::cout << fmt::format("{}: more lines than wanted; refresh it: fuzz_ops --write-table docs/operators.md\n", o.check_table);
  return 7;
}

int run(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (!o.write_table.empty() || !o.check_table.empty()) return write_or_check_table(o);
  const std::vector<Spec> specs = chosen_specs(o);
  const auto begin = std::chrono::steady_clock::now();
  const auto per = static_cast<std::uint64_t>(o.batch);
  const std::uint64_t batches = (static_cast<std::uint64_t>(o.models) + per - 1) / per;
  std::vector<std::uint64_t> jobs;  // batches, then graphs
  for (std::uint64_t i = static_cast<std::uint64_t>(o.from_model) / per; i < batches; ++i) {
    if (o.only < 0 || i == static_cast<std::uint64_t>(o.only) / per) jobs.push_back(i);
  }
  for (std::int64_t i = o.from_graph; i < o.graphs && o.only < 0; ++i) jobs.push_back(batches + static_cast<std::uint64_t>(i));
  std::int64_t models = 0, graphs = 0, symbolic = 0, failures = 0;
  std::map<std::string, std::int64_t> uses, fixed;
  std::map<std::string, std::pair<std::int64_t, std::string>> refused;
  std::vector<std::uint64_t> crashed;
  const auto read = [&](const std::string& text) {
    std::stringstream lines(text);
    for (std::string l; std::getline(lines, l);) {
      const std::size_t first = l.find('\t'), second = l.find('\t', first + 1);
      const std::string what = l.substr(first + 1, second - first - 1), rest = l.substr(second + 1);
      if (l[0] == 'N') ++models, ++uses[what], fixed[what] += rest == "fixed";
      if (l[0] == 'G') ++graphs, symbolic += rest == "symbolic";
      if (l[0] == 'U') ++uses[what];
      if (l[0] == 'R') ++refused[what].first, refused[what].second = rest;
      if (l[0] == 'F') {
        ++failures;
        std::cout << "FAIL " << what << ": " << rest << std::endl;
      }
    }
  };
  const auto work = [&](const std::vector<std::uint64_t>& list, bool alone) {
    tool::run_jobs(
        list.size(), {static_cast<int>(o.jobs), o.timeout_s, kMostJobs},
        [&] {
          ::setenv("POCL_KERNEL_CACHE", "0", 1);
          return [&](std::size_t job) {
            const std::uint64_t index = list[job];
            return index < batches ? run_batch(o, specs, index, alone || o.only >= 0) : run_graph(o, specs, index - batches);
          };
        },
        [&](std::size_t job, const std::string& text, const std::string& failure) {
          read(text);
          if (failure.empty()) return;
          if (alone || list[job] >= batches) {
            ++failures;
            std::cout << fmt::format("FAIL {} {}: {}\n", list[job] < batches ? "batch" : "graph",
                                     list[job] < batches ? list[job] : list[job] - batches, failure)
                      << std::flush;
          } else {
            crashed.push_back(list[job]);
          }
        });
  };
  work(jobs, false);
  for (const std::uint64_t batch : crashed) {  // which model was it?
    std::cout << fmt::format("batch {} crashed\n", batch) << std::flush;
    work({batch}, true);
  }
  for (const auto& [op, row] : refused) std::cout << fmt::format("refused {} {}: {}\n", row.first, op, row.second);
  if (o.verbose) {
    for (const auto& [op, count] : uses)
      std::cout << fmt::format("{:5} {}{}\n", count, op, fixed[op] ? fmt::format(" ({} not with symbols)", fixed[op]) : "");
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << fmt::format("{} models and {} graphs ({} with symbols) of {} operators, seed {}: {} failures in {:.0f} s\n",
                           models, graphs, symbolic, uses.size(), o.seed, failures, seconds);
  return failures == 0 ? 0 : 7;
}

}  // namespace
}  // namespace oclc::fuzz

int main(int argc, char** argv) {
  return oclc::tool::guarded("", [&] { return oclc::fuzz::run(argc, argv); });
}
