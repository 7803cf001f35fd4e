// Dynamic batching: requests wait in one queue; each worker takes as many of equal shapes as fit into one run of the plan.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "examples/serve/metrics.h"
#include "examples/serve/model.h"

namespace serve {

using Clock = std::chrono::steady_clock;

struct BatchOptions {
  int workers = 1;                        // sessions; those of one device take turns in its queue
  std::int64_t max_rows = 32;             // of a batch
  std::chrono::microseconds max_wait{0};  // for further requests behind a batch's first
  std::size_t max_queue = 1024;           // requests that wait; more are refused
};

using Result = std::variant<std::vector<Tensor>, Refusal>;

struct Job {
  Request request;
  std::function<void(const Request&, Result)> done;  // called once, on a worker
  std::int64_t rows = 0;
  std::vector<std::int64_t> shapes;
  Clock::time_point arrived = Clock::now();
  Clock::time_point deadline = Clock::time_point::max();
};

class Batcher {
 public:
  // Runs the plan on zeros first, where its shapes are known, so that no request waits for a compiler. Throws oclc::rt::Error.
  Batcher(std::shared_ptr<const Model> model, const BatchOptions& options, Metrics& metrics);
  // Runs what waits first: no job is lost.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Throws Refusal: 400 for a request that does not fit the model, 503 where too many wait.
  void submit(Job job);
  std::size_t queued() const;
  const Model& model() const { return *model_; }

 private:
  struct Worker;
  // Drivers compile when kernels first run: on zeros, of one row and of as many as there may be.
  void warm(Worker& worker);
  void work(Worker& worker);
  std::vector<Job> take();  // empty at the end
  void run(Worker& worker, std::vector<Job> jobs);
  // The shapes of the outputs, which lie in the worker. Throws oclc::rt::Error.
  std::vector<std::vector<std::int64_t>> run_batch(Worker& worker, const std::vector<Job>& jobs, std::int64_t rows);

  const std::shared_ptr<const Model> model_;
  const BatchOptions options_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Job> queue_;
  bool ending_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace serve
