// An inference server over one plan: the open inference protocol (KServe V2) over HTTP, dynamic batching, metrics.
//
//   serve PLAN [--device SEL] [--address A] [--port P] [--name NAME] [--workers K] [--max-batch ROWS] [--max-wait-us T]
//   [--max-queue N]
//
// Prints "serve: NAME on http://ADDRESS:PORT" when it is ready; SIGTERM or Ctrl-C ends it when what has come is answered.
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>

#include "examples/digits/waiting.h"
#include "examples/number.h"
#include "examples/serve/server.h"

namespace {

serve::ServerOptions parse(int argc, char** argv) {
  serve::ServerOptions o;
  if (argc < 2 || argc % 2 != 0) throw std::invalid_argument("wanted a plan, and options with a value each");
  o.plan = argv[1];
  o.name = std::filesystem::path(o.plan).stem().string();
  for (int i = 2; i < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    const char* named = argv[i];
    if (option == "--device")
      o.device = value;
    else if (option == "--address")
      o.address = value;
    else if (option == "--port")
      o.port = examples::number<std::uint16_t>(named, value, 0);
    else if (option == "--name")
      o.name = value;
    else if (option == "--workers")
      o.batches.workers = examples::number<int>(named, value, 1);
    else if (option == "--max-batch")
      o.batches.max_rows = examples::number<std::int64_t>(named, value, 1);
    else if (option == "--max-wait-us")
      o.batches.max_wait = std::chrono::microseconds(examples::number<std::int64_t>(named, value, 0));
    else if (option == "--max-queue")
      o.batches.max_queue = examples::number<std::size_t>(named, value, 1);
    else
      throw std::invalid_argument("unknown option '" + option + "'");
  }
  return o;
}

std::unique_ptr<serve::Server> start(const serve::ServerOptions& options) {
  const examples::Waiting waiting("compiling kernels, which drivers keep for the next time");
  return std::make_unique<serve::Server>(options);
}

}  // namespace

int main(int argc, char** argv) try {
  const serve::ServerOptions options = parse(argc, argv);
  const std::unique_ptr<serve::Server> server = start(options);
  std::printf("serve: %s on http://%s:%d\n", options.name.c_str(), options.address.c_str(), server->port());
  std::fflush(stdout);
  server->run();
  std::puts("serve: ended");
} catch (const std::invalid_argument& error) {
  std::fprintf(stderr,
               "serve: error: %s; usage: serve PLAN [--device SEL] [--address A] [--port P] [--name NAME] [--workers K] "
               "[--max-batch ROWS] [--max-wait-us T] [--max-queue N]\n",
               error.what());
  return 2;
} catch (const oclc::rt::Error& error) {
  std::fprintf(stderr, "serve: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
  return 5;
} catch (const serve::Refusal& error) {
  std::fprintf(stderr, "serve: error: %s\n", error.message.c_str());
  return 4;
} catch (const std::exception& error) {
  std::fprintf(stderr, "serve: error: %s\n", error.what());
  return 6;
}
