// HTTP/1.1 over one connection that stays open, as far as serve_load needs it.
#pragma once
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <strings.h>
#include <cstdlib>
#include <cstring>
#include <string>

namespace serve {

struct Response {
  int status = 0;  // 0: the connection ended without an answer
  std::string body;
};

class Client {
 public:
  Client(std::string host, std::string port) : host_(std::move(host)), port_(std::move(port)) {}
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Connects unless the last connection is open; false where nobody takes one.
  bool connect() {
    if (socket_ >= 0) return true;
    addrinfo hints{}, *list = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(host_.c_str(), port_.c_str(), &hints, &list) != 0) return false;
    for (const addrinfo* a = list; a && socket_ < 0; a = a->ai_next) {
      socket_ = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
      if (socket_ >= 0 && ::connect(socket_, a->ai_addr, a->ai_addrlen) != 0) close();
    }
    ::freeaddrinfo(list);
    const int one = 1;
    if (socket_ >= 0) ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return socket_ >= 0;
  }

  Response get(const std::string& path) { return exchange("GET " + path + " HTTP/1.1\r\nHost: " + host_ + "\r\n\r\n"); }
  Response post(const std::string& path, const std::string& body) {
    return exchange("POST " + path + " HTTP/1.1\r\nHost: " + host_ +
                    "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

 private:
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  bool receive(std::string& text) {
    char part[65536];
    const ssize_t got = ::recv(socket_, part, sizeof part, 0);
    if (got <= 0) return false;
    text.append(part, static_cast<std::size_t>(got));
    return true;
  }

  static std::string header(const std::string& head, const char* name) {
    for (std::size_t at = head.find("\r\n"); at != std::string::npos && at + 2 < head.size(); at = head.find("\r\n", at + 2)) {
      const char* line = head.c_str() + at + 2;
      const std::size_t length = std::strlen(name);
      if (::strncasecmp(line, name, length) != 0 || line[length] != ':') continue;
      std::string value(line + length + 1);
      value.resize(std::min(value.find("\r\n"), value.size()));
      value.erase(0, value.find_first_not_of(' '));
      return value;
    }
    return "";
  }

  Response exchange(const std::string& text) {
    Response response;
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(socket_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return close(), response;
      at += static_cast<std::size_t>(sent);
    }
    std::string got;
    std::size_t end = std::string::npos;
    while ((end = got.find("\r\n\r\n")) == std::string::npos)
      if (!receive(got)) return close(), response;
    const std::string head = got.substr(0, end + 2);
    std::string body = got.substr(end + 4);
    const std::size_t length = std::strtoull(header(head, "Content-Length").c_str(), nullptr, 10);
    while (body.size() < length)
      if (!receive(body)) return close(), response;
    if (::strcasecmp(header(head, "Connection").c_str(), "close") == 0) close();
    response.status = std::atoi(head.c_str() + head.find(' '));
    response.body = std::move(body);
    return response;
  }

  std::string host_, port_;
  int socket_ = -1;
};

}  // namespace serve
