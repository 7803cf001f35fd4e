// Times choices of one operator after another and keeps every trial.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/passes/layout/choose_convolution.h"
#include "compiler/tuning/database.h"

namespace oclc {

// Name of the operator in a job's graph: what is timed are the launches with it.
inline constexpr std::string_view kTimedNode = "timed";

struct TuningJob {
  std::string label;  // "matmul f32[64, 512] x f32[512, 1000] (fc), 3 times"
  // The operator alone, its constants pseudo-random. A convolution that does not read the network's input stands between pools
  // of one element, so that its neighbours' layouts are those of a network.
  std::shared_ptr<const Graph> graph;
  std::vector<std::string> disabled{};  // passes, beside those that the options switch off
};

// The convolutions and products of known shapes, each once, in order of their flops, the largest first. The graph is one that
// the pipeline was run on, before strategies are chosen.
std::vector<TuningJob> tuning_jobs(const Module& module);
// C[rows, columns] = A[rows, depth] B, where B is constant.
TuningJob product_job(std::int64_t rows, std::int64_t depth, std::int64_t columns);

// A kernel of what was timed, as the cost models see it.
struct TimedKernel {
  std::string strategy;           // with its tiles; empty: loops that no row was asked for
  double seconds = 0;             // of the row, or of loops, by estimate
  double flops = 0, bytes = 0;    // bytes: of each buffer's elements once
  double results = 0, terms = 0;  // elements that it computes, and terms of the sum of each
  bool has_taps = false;          // of a convolution whose filters have more than one element a channel
};

struct Measurement {
  double seconds = 0;
  double span_seconds = 0;  // from the first launch's start to the last one's end, the shortest run
  std::string note;         // see Trial
  bool repeated = false;    // the plan is one of this job that was timed before: these are its seconds
  std::vector<TunedQuestion> asked;
  std::vector<TimedKernel> kernels;
};
// What a job takes with these choices. A run that takes longer than `give_up_seconds` need not be repeated.
using Measure = std::function<Measurement(const TuningJob& job, const Tuning& choices, double give_up_seconds)>;

struct TuningOptions {
  ConvolutionOptions convolution;  // with the target
  double budget_seconds = 60;      // of a job; at least the cost model's choice is timed
  int trials = 1000;               // of a job, at most
  // Times the cost model's choices and the best ones so often again, in turn, after `forget` made plans new: what is found
  // among many looks faster than it is.
  int rounds = 0;
  std::function<void()> forget{};
};

struct TuningProgress {
  std::size_t job = 0;  // of them; counted from 0
  int trial = 0, planned = 0;
  double modelled_seconds = 0, best_seconds = 0;
  double job_elapsed_seconds = 0;
};

struct JobResult {
  double estimated_seconds = 0;                   // of the contraction, by the cost model; 0: not known
  double modelled_seconds = 0, best_seconds = 0;  // 0: nothing could be timed
  int trials = 0, known = 0, refused = 0;         // timed now, found in the database, wrong or impossible
  std::vector<TimedKernel> kernels;               // of the cost model's choice
  std::string best;                               // "cpu_tiles 1 64 1000 512 ..: 6 4 1 1 1"
};

// `known`: trials of earlier searches, which are not made again. `keep` is told of each new one.
JobResult search(const TuningJob& job, const TuningOptions& options, const std::vector<Trial>& known, const Measure& measure,
                 const std::function<void(const Trial&)>& keep, const std::function<void(const TuningProgress&)>& progress);

}  // namespace oclc
