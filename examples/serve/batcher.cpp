#include "examples/serve/batcher.h"

#include <algorithm>
#include <cstring>

namespace serve {

struct Batcher::Worker {
  oclc::rt::Session session;
  std::vector<std::vector<std::byte>> inputs, outputs;  // of the batch
};

namespace {

oclc_tensor view(oclc_dtype dtype, const std::vector<std::int64_t>& shape, std::vector<std::byte>& data) {
  static constexpr std::int64_t kScalar = 0;
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.dtype = dtype;
  tensor.rank = static_cast<std::uint32_t>(shape.size());
  tensor.shape = shape.empty() ? &kScalar : shape.data();
  tensor.host = data.empty() ? nullptr : data.data();
  tensor.bytes = data.size();
  return tensor;
}

const Tensor& input_of(const Request& request, const std::string& name) {
  return *std::find_if(request.inputs.begin(), request.inputs.end(), [&](const Tensor& t) { return t.name == name; });
}

}  // namespace

Batcher::Batcher(std::shared_ptr<const Model> model, const BatchOptions& options, Metrics& metrics)
    : model_(std::move(model)), options_(options), metrics_(metrics) {
  for (int i = 0; i < options.workers; ++i)
    workers_.push_back(std::make_unique<Worker>(Worker{oclc::rt::Session(model_->plan, model_->context),
                                                       std::vector<std::vector<std::byte>>(model_->inputs.size()),
                                                       std::vector<std::vector<std::byte>>(model_->outputs.size())}));
  for (const auto& worker : workers_) warm(*worker);
  for (const auto& worker : workers_) threads_.emplace_back([this, &worker] { work(*worker); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Batcher::submit(Job job) {
  job.rows = model_->rows(job.request);
  job.shapes = model_->shapes(job.request);
  if (job.request.timeout_us > 0)
    job.deadline =
        job.arrived + std::chrono::microseconds(std::min<std::uint64_t>(job.request.timeout_us, std::uint64_t{1} << 40));
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= options_.max_queue) throw Refusal{503, "too many requests wait"};
    queue_.push_back(std::move(job));
  }
  arrived_.notify_one();
}

std::size_t Batcher::queued() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

// The oldest job and those of its shapes behind it that fit, waiting for further ones no longer than max_wait since it came.
std::vector<Job> Batcher::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return {};
    const bool batches = !model_->batch_dim().empty();
    const auto fitting = [&] {
      std::int64_t rows = 0;
      for (const Job& job : queue_)
        if (job.shapes == queue_.front().shapes) rows += job.rows;
      return rows;
    };
    const Clock::time_point until = queue_.front().arrived + options_.max_wait;
    if (batches && !ending_ && fitting() < options_.max_rows && Clock::now() < until) {
      arrived_.wait_until(lock, until);
      continue;  // another worker may have taken the first one
    }
    std::vector<Job> jobs;
    std::int64_t rows = 0;
    for (auto at = queue_.begin(); at != queue_.end();) {
      const bool fits = jobs.empty() || (batches && at->shapes == jobs.front().shapes && rows + at->rows <= options_.max_rows);
      if (!fits) {
        ++at;
        continue;
      }
      rows += at->rows;
      jobs.push_back(std::move(*at));
      at = queue_.erase(at);
      if (!batches || rows >= options_.max_rows) break;
    }
    return jobs;
  }
}

void Batcher::work(Worker& worker) {
  for (;;) {
    std::vector<Job> jobs = take();
    if (jobs.empty()) return;
    const auto late =
        std::stable_partition(jobs.begin(), jobs.end(), [now = Clock::now()](const Job& j) { return j.deadline >= now; });
    for (auto at = late; at != jobs.end(); ++at)
      at->done(at->request, Refusal{504, "the request's time was over before it ran"});
    jobs.erase(late, jobs.end());
    if (!jobs.empty()) run(worker, std::move(jobs));
  }
}

void Batcher::warm(Worker& worker) {
  for (const std::int64_t rows : {std::int64_t{1}, options_.max_rows}) {
    std::optional<Request> request = model_->zeros(rows);
    if (!request) return;
    std::vector<Job> jobs(1);
    jobs[0].request = std::move(*request);
    run_batch(worker, jobs, rows);
  }
}

std::vector<std::vector<std::int64_t>> Batcher::run_batch(Worker& worker, const std::vector<Job>& jobs, std::int64_t rows) {
  std::vector<std::vector<std::int64_t>> shapes(model_->outputs.size());
  oclc::rt::Session& session = worker.session;
  // Inputs of another size would contradict those that are bound while they are exchanged one by one.
  for (const oclc_binding_info& input : model_->inputs)
    oclc_session_set_input(session.get(), model_->entry, input.name, nullptr);
  for (std::size_t i = 0; i < model_->inputs.size(); ++i) {
    const oclc_binding_info& input = model_->inputs[i];
    std::vector<std::byte>& data = worker.inputs[i];
    data.clear();
    for (const Job& job : jobs) {
      const std::vector<std::byte>& part = input_of(job.request, input.name).data;
      data.insert(data.end(), part.begin(), part.end());
    }
    std::vector<std::int64_t> shape = input_of(jobs.front().request, input.name).shape;
    if (!model_->batch_dim().empty()) shape[0] = rows;
    session.set_input(model_->entry, input.name, view(input.dtype, shape, data));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const oclc_binding_info& output = model_->outputs[i];
    shapes[i] = session.shape(model_->entry, OCLC_OUTPUT, output.name);
    worker.outputs[i].resize(session.bytes(model_->entry, OCLC_OUTPUT, output.name));
    session.set_output(model_->entry, output.name, view(output.dtype, shapes[i], worker.outputs[i]));
  }
  session.run(model_->entry);
  return shapes;
}

void Batcher::run(Worker& worker, std::vector<Job> jobs) {
  const bool batches = !model_->batch_dim().empty();
  std::int64_t rows = 0;
  for (const Job& job : jobs) rows += job.rows;
  metrics_.ran(rows, static_cast<int>(jobs.size()), std::chrono::duration<double>(Clock::now() - jobs.front().arrived).count());
  std::vector<std::vector<std::int64_t>> shapes;
  try {
    shapes = run_batch(worker, jobs, rows);
  } catch (const oclc::rt::Error& error) {
    const int code = error.status() == OCLC_E_BINDING ? 400 : 500;
    for (const Job& job : jobs) job.done(job.request, Refusal{code, error.what()});
    return;
  }
  std::int64_t first = 0;
  for (const Job& job : jobs) {
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const oclc_binding_info& output = model_->outputs[i];
      const std::vector<std::string>& wanted = job.request.outputs;
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), output.name) == wanted.end()) continue;
      Tensor result{output.name, output.dtype, shapes[i], {}};
      const std::size_t row_bytes = worker.outputs[i].size() / static_cast<std::size_t>(batches ? rows : 1);
      if (batches) result.shape[0] = job.rows;
      const auto begin = worker.outputs[i].begin() + first * static_cast<std::ptrdiff_t>(batches ? row_bytes : 0);
      result.data.assign(begin, begin + static_cast<std::ptrdiff_t>(row_bytes) * (batches ? job.rows : 1));
      results.push_back(std::move(result));
    }
    first += job.rows;
    job.done(job.request, std::move(results));
  }
}

}  // namespace serve
