#include "runtime/program/builders.h"

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
#include "runtime/program/builder/messages.h"

extern char** environ;

namespace oclc::runtime {
namespace {

// A process of PoCL's compiler takes about 200 MB.
constexpr unsigned kMostBuilders = 7;
constexpr int kLookMs = 100;

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

unsigned Builders::available() {
  if (const char* wish = std::getenv("OCLC_BUILDERS"); wish && *wish) {
    const unsigned long count = std::strtoul(wish, nullptr, 10);
    if (count == 0) return 0;
    return ::access(builder_program().c_str(), X_OK) == 0 ? static_cast<unsigned>(std::min(count, 64ul)) : 0;
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (cores < 2 || ::access(builder_program().c_str(), X_OK) != 0) return 0;
  return std::min(cores - 1, kMostBuilders);
}

Builders::Builders(const Device& device, std::vector<BuildJob> jobs, Work work, Pace pace, Tell tell)
    : device_(device), jobs_(std::move(jobs)), work_(work), pace_(pace), tell_(std::move(tell)), owner_(::getpid()) {
  for (const BuildJob& job : jobs_) {
    if (job.process >= processes_.size()) processes_.resize(job.process + 1);
    processes_[job.process].units.push_back(job.unit);
  }
}

Builders::~Builders() {
  for (Process& process : processes_) end(process);
}

void Builders::start() {
  const std::lock_guard lock(mutex_);
  start_locked();
}

void Builders::start_locked() {
  for (Process& process : processes_)
    if (process.socket < 0 && !process.units.empty()) start_one(process);
}

void Builders::start_one(Process& process) {
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
  std::string program = builder_program(), platform = std::to_string(device_.platform_index),
              number = std::to_string(device_.device_index);
  std::string words[] = {pace_ == Pace::behind ? "behind" : "beside",
                         has(device_quirks(device_.id), Quirk::races_on_disk) ? "in_turn" : "at_once"};
  char* arguments[] = {program.data(), platform.data(), number.data(), words[0].data(), words[1].data(), nullptr};
  pid_t pid = -1;
  const int code = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (code != 0) {
    ::close(ends[0]);
    return;
  }
  process.socket = ends[0];
  // It has made another process, which is nobody's child: a driver takes its time to leave a device, and nobody waits for that.
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  for (const std::uint32_t unit : process.units) {
    const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const BuildJob& j) { return j.unit == unit; });
    if (!ask(process, job->lifted ? BuilderRequest::kLifted : BuilderRequest::kProgram, unit, job->options, job->source))
      return;
    process.unanswered.emplace_back(unit, "");
  }
}

// The other side sees the end of the socket, and ends at once or with its work. A process that forked off ours leaves them to
// it.
void Builders::end(Process& process) {
  if (process.socket < 0) return;
  if (::getpid() == owner_) ::shutdown(process.socket, SHUT_RDWR);
  ::close(process.socket);
  process.socket = -1;
  process.unanswered.clear();
}

void Builders::lost(Process& process) {
  end(process);
  if (!std::exchange(told_, true))
    tell_("a process that compiled kernels beside this one has ended; what is left of its work is done in this one");
}

bool Builders::ask(Process& process, std::uint32_t kind, std::uint32_t unit, const std::string& first,
                   const std::string& second) {
  const BuilderRequest head{kind, unit, first.size(), second.size()};
  if (send_all(process.socket, &head, sizeof head) && send_all(process.socket, first.data(), first.size()) &&
      send_all(process.socket, second.data(), second.size()))
    return true;
  lost(process);
  return false;
}

Builders::Process* Builders::process_of(std::uint32_t unit) {
  for (Process& process : processes_)
    if (std::find(process.units.begin(), process.units.end(), unit) != process.units.end()) return &process;
  return nullptr;
}

bool Builders::builds(std::uint32_t unit) const {
  return work_ == Work::programs_and_kernels &&
         std::any_of(jobs_.begin(), jobs_.end(), [&](const BuildJob& j) { return j.unit == unit; });
}

void Builders::want(std::uint32_t unit, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  Process* process = process_of(unit);
  if (!process || told_ || !wanted_.emplace(unit, asked_for(kernel)).second) return;
  start_locked();
  if (work_ == Work::programs) return;  // each is built as its process begins
  if (process->socket >= 0 && ask(*process, BuilderRequest::kKernel, unit, kernel, ""))
    process->unanswered.emplace_back(unit, kernel);
}

// One answer, if it comes in time. Requests are answered in their order.
bool Builders::take_reply(Process& process, int timeout_ms) {
  pollfd wanted{process.socket, POLLIN, 0};
  const int ready = ::poll(&wanted, 1, timeout_ms);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return false;
  BuilderReply reply{};
  if (ready < 0 || ::recv(process.socket, &reply, sizeof reply, MSG_WAITALL) != static_cast<ssize_t>(sizeof reply) ||
      process.unanswered.empty()) {
    lost(process);
    return false;
  }
  // What it could not build fails here as well, with the driver's words.
  done_.insert(process.unanswered.front());
  process.unanswered.erase(process.unanswered.begin());
  return true;
}

void Builders::wait(std::uint32_t unit, const std::string& kernel, const Look& look) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      Process* process = process_of(unit);
      if (!process || process->socket < 0) return;
      const auto asked = std::find(process->unanswered.begin(), process->unanswered.end(), std::pair(unit, kernel));
      if (asked == process->unanswered.end()) return;
      if (take_reply(*process, kLookMs)) continue;
    }
    if (look) look();
  }
}

void Builders::wait_for_unit(std::uint32_t unit, const Look& look) { wait(unit, "", look); }
void Builders::wait_for_kernel(std::uint32_t unit, const std::string& kernel, const Look& look) {
  wait(unit, asked_for(kernel), look);
}

bool Builders::is_done(std::uint32_t unit, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  Process* process = process_of(unit);
  while (process && process->socket >= 0 && take_reply(*process, 0)) {
  }
  if (!process || process->socket < 0) return true;
  const auto& left = process->unanswered;
  return std::find(left.begin(), left.end(), std::pair(unit, asked_for(kernel))) == left.end();
}

std::pair<std::uint32_t, std::uint32_t> Builders::asked_and_done() const {
  const std::lock_guard lock(mutex_);
  std::uint32_t done = 0;
  for (const auto& item : wanted_) done += static_cast<std::uint32_t>(done_.count(item));
  return {static_cast<std::uint32_t>(wanted_.size()), done};
}

void Builders::rest() {
  const std::lock_guard lock(mutex_);
  const bool busy = std::any_of(processes_.begin(), processes_.end(), [](const Process& p) { return !p.unanswered.empty(); });
  for (Process& process : processes_)
    if (!busy) end(process);
}

}  // namespace oclc::runtime
