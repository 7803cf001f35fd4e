#include "examples/serve/server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <stdexcept>

namespace serve {
namespace {

constexpr const char* kJsonBytes = "Inference-Header-Content-Length";
constexpr timeval kLinger = {0, 300'000};  // for requests that were on their way when the last answer was written

const char* reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 409:
      return "Conflict";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Internal Server Error";
  }
}

void reply_text(evhttp_request* request, int code, const std::string& text, const char* type) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", type);
  evbuffer* body = evbuffer_new();
  evbuffer_add(body, text.data(), text.size());
  evhttp_send_reply(request, code, reason(code), body);
  evbuffer_free(body);
}

std::string body_of(evhttp_request* request) {
  evbuffer* buffer = evhttp_request_get_input_buffer(request);
  std::string body(evbuffer_get_length(buffer), '\0');
  evbuffer_copyout(buffer, body.data(), body.size());
  return body;
}

}  // namespace

void Server::Free::operator()(event_base* base) const { event_base_free(base); }
void Server::Free::operator()(evhttp* http) const { evhttp_free(http); }
void Server::Free::operator()(event* one) const { event_free(one); }

std::unique_ptr<Batcher> Server::load() {
  return std::make_unique<Batcher>(std::make_shared<Model>(options_.name, options_.plan, options_.device), options_.batches,
                                   metrics_);
}

Server::Server(const ServerOptions& options) : options_(options), batcher_(load()) {
  base_.reset(event_base_new());
  if (base_) http_.reset(evhttp_new(base_.get()));
  if (!http_) throw std::runtime_error("libevent cannot start");
  evhttp_set_max_body_size(http_.get(), static_cast<ev_ssize_t>(options.max_body_bytes));
  evhttp_set_max_headers_size(http_.get(), 65536);
  evhttp_set_timeout(http_.get(), 60);
  socket_ = evhttp_bind_socket_with_handle(http_.get(), options.address.c_str(), options.port);
  if (!socket_)
    throw std::runtime_error("cannot listen on " + options.address + ":" + std::to_string(options.port) + ": " +
                             std::strerror(errno));
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(evhttp_bound_socket_get_fd(socket_), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                              : reinterpret_cast<sockaddr_in&>(address).sin_port);
  evhttp_set_gencb(
      http_.get(), [](evhttp_request* request, void* self) { static_cast<Server*>(self)->handle(request); }, this);
  posted_descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  posted_event_.reset(event_new(
      base_.get(), posted_descriptor_, EV_READ | EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Server*>(self)->send_posted(); }, this));
  event_add(posted_event_.get(), nullptr);
  linger_.reset(event_new(
      base_.get(), -1, 0, [](evutil_socket_t, short, void* self) { static_cast<Server*>(self)->end_if_idle(); }, this));
  for (const int number : {SIGTERM, SIGINT}) {
    signals_.emplace_back(evsignal_new(
        base_.get(), number, [](evutil_socket_t, short, void* self) { static_cast<Server*>(self)->begin_end(); }, this));
    event_add(signals_.back().get(), nullptr);
  }
}

Server::~Server() {
  if (loader_.joinable()) loader_.join();
  for (std::thread& thread : retiring_) thread.join();
  batcher_.reset();
  http_.reset();  // connections that close look into pending_
  posted_event_.reset();
  if (posted_descriptor_ >= 0) ::close(posted_descriptor_);
}

void Server::run() { event_base_dispatch(base_.get()); }

void Server::begin_end() {
  if (ending_) return;
  ending_ = true;
  evhttp_del_accept_socket(http_.get(), socket_);
  end_if_idle();
}

void Server::end_if_idle() {
  if (!ending_) return;
  // The first time, and whenever an answer was written since, a moment for what is on its way.
  if (pending_.empty() && seen_ == next_id_)
    event_base_loopexit(base_.get(), nullptr);
  else
    event_add(linger_.get(), &kLinger);
  seen_ = next_id_;
}

std::uint64_t Server::keep(evhttp_request* request, bool counted) {
  const std::uint64_t id = next_id_++;
  Pending& pending = pending_[id];
  pending = {request, Clock::now(), counted, std::make_unique<Gone>(Gone{this, id})};
  // A client that goes away takes its request with it.
  evhttp_connection_set_closecb(
      evhttp_request_get_connection(request),
      [](evhttp_connection*, void* gone) {
        const Gone of = *static_cast<const Gone*>(gone);
        of.server->pending_.erase(of.id);
      },
      pending.gone.get());
  return id;
}

void Server::post(Reply reply) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(reply));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(posted_descriptor_, &one, sizeof one);
}

void Server::send_posted() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(posted_descriptor_, &count, sizeof count);
  std::vector<Reply> replies;
  std::unique_ptr<Batcher> loaded;
  {
    const std::lock_guard lock(mutex_);
    replies.swap(posted_);
    loaded = std::move(loaded_);
  }
  if (loaded) {
    std::swap(loaded, batcher_);
    metrics_.reloaded();
    // The one before answers what waits in it, while the new one takes what comes.
    retiring_.emplace_back([old = std::move(loaded)]() mutable { old.reset(); });
  }
  for (const Reply& reply : replies) send(reply.id, reply.code, reply.answer);
}

void Server::send(std::uint64_t id, int code, const Answer& answer) {
  const auto at = pending_.find(id);
  if (at == pending_.end()) return;
  const Pending pending = std::move(at->second);
  pending_.erase(at);
  if (pending.counted) metrics_.answered(code, std::chrono::duration<double>(Clock::now() - pending.arrived).count());
  evhttp_connection* connection = evhttp_request_get_connection(pending.request);
  evhttp_connection_set_closecb(connection, nullptr, nullptr);
  evkeyvalq* headers = evhttp_request_get_output_headers(pending.request);
  if (answer.json_bytes > 0) evhttp_add_header(headers, kJsonBytes, std::to_string(answer.json_bytes).c_str());
  if (ending_) evhttp_add_header(headers, "Connection", "close");
  if (code == 503) evhttp_add_header(headers, "Retry-After", "1");
  reply_text(pending.request, code, answer.body, answer.json_bytes > 0 ? "application/octet-stream" : "application/json");
}

void Server::infer(evhttp_request* request) {
  const std::uint64_t id = keep(request, true);
  try {
    const std::string body = body_of(request);
    std::size_t json_bytes = body.size();
    if (const char* text = evhttp_find_header(evhttp_request_get_input_headers(request), kJsonBytes)) {
      const char* end = text + std::strlen(text);
      if (std::from_chars(text, end, json_bytes).ptr != end) throw Refusal{400, std::string(kJsonBytes) + ": wanted a number"};
    }
    Job job;
    job.request = read_request(body, json_bytes);
    job.done = [this, id](const Request& of, Result result) {
      Reply reply{id, 200, {}};
      if (const auto* refusal = std::get_if<Refusal>(&result))
        reply.code = refusal->code, reply.answer.body = error_body(refusal->message);
      else
        reply.answer = write_answer(options_.name, of, std::get<0>(result));
      post(std::move(reply));
    };
    batcher_->submit(std::move(job));
  } catch (const Refusal& refusal) {
    send(id, refusal.code, {error_body(refusal.message), 0});
  }
}

void Server::reload(evhttp_request* request) {
  const std::uint64_t id = keep(request, false);
  if (loading_.exchange(true)) return send(id, 409, {error_body("the plan is being loaded"), 0});
  if (loader_.joinable()) loader_.join();
  loader_ = std::thread([this, id] {
    Reply reply{id, 200, {"{}", 0}};
    try {
      std::unique_ptr<Batcher> fresh = load();
      const std::lock_guard lock(mutex_);
      loaded_ = std::move(fresh);
    } catch (const Refusal& refusal) {
      reply.code = refusal.code, reply.answer.body = error_body(refusal.message);
    } catch (const std::exception& error) {
      reply.code = 400, reply.answer.body = error_body(error.what());
    }
    loading_ = false;
    post(std::move(reply));
  });
}

void Server::handle(evhttp_request* request) {
  const char* path_text = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
  const std::string path = path_text ? path_text : "";
  const bool post = evhttp_request_get_command(request) == EVHTTP_REQ_POST;
  const std::string model = "/v2/models/" + options_.name;
  if (post && path == model + "/infer") return infer(request);
  if (post && path == "/v2/repository/models/" + options_.name + "/load") return reload(request);
  if (ending_) evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
  const auto json = [&](int code, const std::string& text) { reply_text(request, code, text, "application/json"); };
  if (post) return json(404, error_body("wanted POST to " + model + "/infer, found " + path));
  if (path == "/metrics") return reply_text(request, 200, metrics_.text(batcher_->queued()), "text/plain; version=0.0.4");
  if (path == "/v2/health/live") return json(200, "{\"live\":true}");
  if (path == "/v2/health/ready" || path == model + "/ready")
    return json(ending_ ? 503 : 200, ending_ ? "{\"ready\":false}" : "{\"ready\":true}");
  if (path == "/v2")
    return json(200, std::string("{\"name\":\"oclc serve\",\"version\":\"") + oclc_version() +
                         "\",\"extensions\":[\"binary_tensor_data\",\"model_repository\"]}");
  if (path == model) return json(200, batcher_->model().description());
  json(404, error_body("no such path: " + path));
}

}  // namespace serve
