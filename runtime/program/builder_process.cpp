#include "runtime/program/builder_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "runtime/device/quirks.h"
#include "runtime/package/own_folder.h"

extern char** environ;

namespace oclc::runtime {
namespace {

// A process of PoCL's compiler takes about 200 MB.
constexpr unsigned kMostBuilders = 7;

std::string builder_program() {
  const char* wish = std::getenv("OCLC_BUILDER");
  if (wish && *wish) return wish;
  const std::string folder = package::folder_of(reinterpret_cast<const void*>(&builder_program));
  return folder.empty() ? "" : folder + "oclc/oclc-builder";
}

bool send_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

unsigned BuilderProcess::available() {
  if (const char* wish = std::getenv("OCLC_BUILDERS"); wish && *wish) {
    const unsigned long count = std::strtoul(wish, nullptr, 10);
    if (count == 0) return 0;
    return ::access(builder_program().c_str(), X_OK) == 0 ? static_cast<unsigned>(std::min(count, 64ul)) : 0;
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (cores < 2 || ::access(builder_program().c_str(), X_OK) != 0) return 0;
  return std::min(cores - 1, kMostBuilders);
}

void BuilderProcess::start(const Device& device, Pace pace) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // PoCL's threads stay where the system puts them: on a core of this process's own thread they would wait for it.
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e)
    if (std::string_view(*e).substr(0, 14) != "POCL_AFFINITY=") environment.push_back(*e);
  environment.push_back(nullptr);
  std::string program = builder_program(), platform = std::to_string(device.platform_index),
              number = std::to_string(device.device_index);
  std::string words[] = {pace == Pace::behind ? "behind" : "beside",
                         has(device_quirks(device.id), Quirk::races_on_disk) ? "in_turn" : "at_once"};
  char* arguments[] = {program.data(), platform.data(), number.data(), words[0].data(), words[1].data(), nullptr};
  pid_t pid = -1;
  const int code = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (code != 0) {
    ::close(ends[0]);
    return;
  }
  socket_ = ends[0];
  owner_ = ::getpid();
  // It has made another process, which is nobody's child: a driver takes its time to leave a device, and nobody waits for that.
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void BuilderProcess::end() {
  if (socket_ < 0) return;
  if (::getpid() == owner_) ::shutdown(socket_, SHUT_RDWR);
  ::close(std::exchange(socket_, -1));
}

bool BuilderProcess::ask(std::uint32_t kind, std::uint32_t unit, const std::string& first, const std::string& second) {
  const BuilderRequest head{kind, unit, first.size(), second.size()};
  if (send_all(socket_, &head, sizeof head) && send_all(socket_, first.data(), first.size()) &&
      send_all(socket_, second.data(), second.size()))
    return true;
  end();
  return false;
}

std::optional<BuilderReply> BuilderProcess::take_reply(int timeout_ms) {
  pollfd wanted{socket_, POLLIN, 0};
  const int ready = ::poll(&wanted, 1, timeout_ms);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::nullopt;
  BuilderReply reply{};
  if (ready > 0 && ::recv(socket_, &reply, sizeof reply, MSG_WAITALL) == static_cast<ssize_t>(sizeof reply)) return reply;
  end();
  return std::nullopt;
}

}  // namespace oclc::runtime
