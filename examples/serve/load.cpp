// Load for a server of the open inference protocol: K connections, each with one request at a time.
//
//   serve_load HOST:PORT NAME [--connections K] [--seconds S] [--rows R] [--until-end 1]
//
// Sends a few different requests in turn, and compares each answer with the first one to the same request. Prints answers a
// second and latencies; exit status 1 where an answer was wrong or lost (a request was sent, and the connection ended without
// its answer). With
// --until-end a server that takes no connections any more ends the load, and is no failure.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "examples/number.h"
#include "examples/serve/client.h"

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kBodies = 8;
constexpr double kTolerance = 1e-4;  // relative to the largest value: batches of other sizes add in another order

struct Options {
  std::string host, port, model;
  int connections = 1;
  double seconds = 5;
  std::int64_t rows = 1;
  bool until_end = false;
};

// A request with values between -1 and 1, or small integers, that depend on `seed`.
std::string make_body(const json& model, std::int64_t rows, unsigned seed) {
  json document = {{"inputs", json::array()}};
  for (const json& input : model.at("inputs")) {
    std::vector<std::int64_t> shape = input.at("shape");
    std::int64_t count = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 0) shape[d] = d == 0 ? rows : 1;
      count *= shape[d];
    }
    const bool whole = input.at("datatype").get<std::string>().find("FP") == std::string::npos;
    json data = json::array();
    for (std::int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      if (whole)
        data.push_back(seed >> 31);
      else
        data.push_back(std::round((static_cast<double>(seed >> 8) / 8388608.0 - 1) * 1e4) / 1e4);
    }
    document["inputs"].push_back(
        {{"name", input.at("name")}, {"datatype", input.at("datatype")}, {"shape", shape}, {"data", std::move(data)}});
  }
  return document.dump();
}

std::vector<double> values_of(const std::string& body) {
  std::vector<double> values;
  const json document = json::parse(body);
  for (const json& output : document.at("outputs"))
    for (const json& value : output.at("data")) values.push_back(value.is_null() ? NAN : value.get<double>());
  return values;
}

bool equal(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  double largest = 0;
  for (const double v : a) largest = std::max(largest, std::fabs(v));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= kTolerance * largest)) return false;
  return true;
}

struct Count {
  std::vector<double> times_ms;
  std::uint64_t wrong = 0, refused = 0, lost = 0;
};

void load(const Options& o, const std::vector<std::string>& bodies, const std::vector<std::vector<double>>& wanted,
          Clock::time_point end, std::size_t first, Count& count) {
  serve::Client client(o.host, o.port);
  for (std::size_t i = first; Clock::now() < end; ++i) {
    if (!client.connect()) {
      if (o.until_end) return;
      ++count.refused;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    const auto begin = Clock::now();
    const serve::Response response = client.post("/v2/models/" + o.model + "/infer", bodies[i % bodies.size()]);
    if (response.status == 0)
      ++count.lost;
    else if (response.status == 503)
      ++count.refused;
    else if (response.status != 200 || !equal(wanted[i % bodies.size()], values_of(response.body)))
      ++count.wrong;
    else
      count.times_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
}

double percentile(const std::vector<double>& sorted, double p) {
  return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(p / 100 * static_cast<double>(sorted.size() - 1) + 0.5)];
}

int run(const Options& o) {
  serve::Client client(o.host, o.port);
  if (!client.connect()) throw std::runtime_error("no server on " + o.host + ":" + o.port);
  const serve::Response description = client.get("/v2/models/" + o.model);
  if (description.status != 200) throw std::runtime_error("no model '" + o.model + "': " + description.body);
  std::vector<std::string> bodies;
  std::vector<std::vector<double>> wanted;
  for (unsigned i = 0; i < kBodies; ++i) {
    bodies.push_back(make_body(json::parse(description.body), o.rows, i + 1));
    if (!client.connect()) throw std::runtime_error("the server has gone");
    const serve::Response response = client.post("/v2/models/" + o.model + "/infer", bodies.back());
    if (response.status != 200) throw std::runtime_error("refused: " + response.body);
    wanted.push_back(values_of(response.body));
  }
  std::vector<Count> counts(static_cast<std::size_t>(o.connections));
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.seconds));
  for (std::size_t i = 0; i < counts.size(); ++i) threads.emplace_back([&, i] { load(o, bodies, wanted, end, i, counts[i]); });
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  Count all;
  for (const Count& count : counts) {
    all.times_ms.insert(all.times_ms.end(), count.times_ms.begin(), count.times_ms.end());
    all.wrong += count.wrong, all.refused += count.refused, all.lost += count.lost;
  }
  std::sort(all.times_ms.begin(), all.times_ms.end());
  std::printf(
      "load: connections=%d answers=%zu wrong=%llu refused=%llu lost=%llu rows_per_s=%.1f p50_ms=%.3f p90_ms=%.3f "
      "p99_ms=%.3f\n",
      o.connections, all.times_ms.size(), static_cast<unsigned long long>(all.wrong),
      static_cast<unsigned long long>(all.refused), static_cast<unsigned long long>(all.lost),
      static_cast<double>(all.times_ms.size()) * static_cast<double>(o.rows) / seconds, percentile(all.times_ms, 50),
      percentile(all.times_ms, 90), percentile(all.times_ms, 99));
  return all.wrong == 0 && all.lost == 0 && !all.times_ms.empty() ? 0 : 1;
}

Options parse(int argc, char** argv) {
  if (argc < 3 || argc % 2 == 0) throw std::invalid_argument("wanted HOST:PORT NAME, and options with a value each");
  Options o;
  const std::string place = argv[1];
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) throw std::invalid_argument("wanted HOST:PORT, found '" + place + "'");
  o.host = place.substr(0, colon), o.port = place.substr(colon + 1), o.model = argv[2];
  for (int i = 3; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--connections")
      o.connections = examples::number<int>(argv[i], argv[i + 1], 1);
    else if (option == "--seconds")
      o.seconds = examples::number<double>(argv[i], argv[i + 1], 0);
    else if (option == "--rows")
      o.rows = examples::number<std::int64_t>(argv[i], argv[i + 1], 1);
    else if (option == "--until-end")
      o.until_end = examples::number<int>(argv[i], argv[i + 1], 0) != 0;
    else
      throw std::invalid_argument("unknown option '" + option + "'");
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) try { return run(parse(argc, argv)); } catch (const std::invalid_argument& error) {
  std::fprintf(
      stderr,
      "serve_load: error: %s; usage: serve_load HOST:PORT NAME [--connections K] [--seconds S] [--rows R] [--until-end 1]\n",
      error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "serve_load: error: %s\n", error.what());
  return 6;
}
