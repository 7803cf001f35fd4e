// HTTP in front of a batcher: one thread reads requests and writes answers, the batcher's workers run the plan.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "examples/serve/batcher.h"

struct event;
struct event_base;
struct evhttp;
struct evhttp_bound_socket;
struct evhttp_connection;
struct evhttp_request;

namespace serve {

struct ServerOptions {
  std::string plan, device, name;
  std::string address = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: one that is free
  std::size_t max_body_bytes = std::size_t{256} << 20;
  BatchOptions batches;
};

class Server {
 public:
  // Loads the plan and runs it once, so that no request waits for a compiler. Throws what Model does, or std::runtime_error.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  // Serves until SIGTERM or SIGINT; then takes no connection more, answers what has come, and returns.
  void run();

 private:
  // What a connection that closes is told with.
  struct Gone {
    Server* server;
    std::uint64_t id;
  };
  struct Pending {
    evhttp_request* request = nullptr;
    Clock::time_point arrived;
    bool counted = false;  // an inference
    std::unique_ptr<Gone> gone;
  };
  struct Reply {
    std::uint64_t id = 0;
    int code = 200;
    Answer answer;
  };

  void handle(evhttp_request* request);
  void infer(evhttp_request* request);
  void reload(evhttp_request* request);
  std::uint64_t keep(evhttp_request* request, bool counted);
  void post(Reply reply);  // from any thread
  void send_posted();
  void send(std::uint64_t id, int code, const Answer& answer);
  void begin_end();
  void end_if_idle();
  std::unique_ptr<Batcher> load();

  const ServerOptions options_;
  Metrics metrics_;
  std::unique_ptr<Batcher> batcher_;
  std::uint16_t port_ = 0;

  struct Free {
    void operator()(event_base* base) const;
    void operator()(evhttp* http) const;
    void operator()(event* one) const;
  };
  std::unique_ptr<event_base, Free> base_;
  std::unique_ptr<evhttp, Free> http_;
  evhttp_bound_socket* socket_ = nullptr;  // http_'s
  std::unique_ptr<event, Free> posted_event_, linger_;
  std::vector<std::unique_ptr<event, Free>> signals_;
  int posted_descriptor_ = -1;
  bool ending_ = false;
  std::uint64_t seen_ = 0;  // requests until the last look for the end

  std::unordered_map<std::uint64_t, Pending> pending_;  // the loop's thread alone
  std::uint64_t next_id_ = 1;
  std::mutex mutex_;
  std::vector<Reply> posted_;
  std::unique_ptr<Batcher> loaded_;  // a reload's result, taken when its reply is sent
  std::thread loader_;
  std::atomic<bool> loading_ = false;
  std::vector<std::thread> retiring_;  // batchers that finish what waits in them
};

}  // namespace serve
