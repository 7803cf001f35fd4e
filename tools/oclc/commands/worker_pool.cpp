#include "tools/oclc/commands/worker_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tools/oclc/failure.h"

namespace oclc::tool {
namespace {

using Clock = std::chrono::steady_clock;

// Messages are a length and bytes. False if the other side is gone.
bool send_all(int fd, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

struct Worker {
  pid_t pid = -1;
  int fd = -1;
  bool busy = false;
  std::size_t job = 0, jobs = 0;  // the one it is at, and how many it was given
  Clock::time_point deadline;
};

[[noreturn]] void serve(int fd, const std::function<std::function<std::string(std::size_t)>()>& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int code = guarded("", [&] {
    const auto work = start();
    for (std::uint64_t job = 0; receive_all(fd, &job, sizeof job);) {
      const std::string text = work(static_cast<std::size_t>(job));
      const std::uint64_t size = text.size();
      if (!send_all(fd, &size, sizeof size) || !send_all(fd, text.data(), text.size())) break;
    }
    return 0;
  });
  ::_exit(code);  // no destructors of what the parent made
}

std::string end_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return fmt::format("the process crashed: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("the process ended with code {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

}  // namespace

void run_jobs(std::size_t count, const PoolOptions& options,
              const std::function<std::function<std::string(std::size_t)>()>& start,
              const std::function<void(std::size_t, const std::string&, const std::string&)>& done) {
  std::vector<Worker> workers(std::min(count, static_cast<std::size_t>(std::max(options.workers, 1))));
  const auto launch = [&](Worker& worker) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) io_error("worker", "cannot make a socket", errno);
    const pid_t pid = ::fork();
    if (pid < 0) io_error("worker", "cannot make a process", errno);
    if (pid == 0) {
      for (const Worker& other : workers) {
        if (other.fd >= 0) ::close(other.fd);
      }
      ::close(ends[0]);
      serve(ends[1], start);
    }
    ::close(ends[1]);
    worker = {};
    worker.pid = pid;
    worker.fd = ends[0];
  };
  const auto stop = [](Worker& worker, bool kill) {
    if (kill) ::kill(worker.pid, SIGKILL);
    ::close(worker.fd);
    worker.fd = -1;
    worker.busy = false;
    return end_of(worker.pid);
  };
  std::size_t next = 0, finished = 0;
  while (finished < count) {
    for (Worker& worker : workers) {
      if (worker.busy || next == count) continue;
      if (worker.fd < 0) launch(worker);
      const std::uint64_t job = next;
      worker.busy = true;
      worker.job = next++;
      ++worker.jobs;
      worker.deadline =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.timeout_s));
      send_all(worker.fd, &job, sizeof job);  // if it is gone, reading tells
    }
    std::vector<pollfd> waiting;
    for (const Worker& worker : workers) waiting.push_back({worker.busy ? worker.fd : -1, POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp(options.timeout_s * 1000, 1.0, 200.0)));
    for (std::size_t i = 0; i < workers.size(); ++i) {
      Worker& worker = workers[i];
      if (!worker.busy) continue;
      if (Clock::now() > worker.deadline) {  // a result that came too late counts as none
        stop(worker, true);
        done(worker.job, "", fmt::format("no result within {} s", options.timeout_s));
        ++finished;
      } else if (waiting[i].revents != 0) {
        std::uint64_t size = 0;
        std::string text;
        bool good = receive_all(worker.fd, &size, sizeof size) && size < (std::uint64_t{1} << 30);
        if (good) text.resize(static_cast<std::size_t>(size));
        good = good && receive_all(worker.fd, text.data(), text.size());
        worker.busy = false;
        done(worker.job, text, good ? "" : stop(worker, false));
        ++finished;
        if (good && worker.jobs == options.most_jobs) stop(worker, false);
      }
    }
  }
  for (Worker& worker : workers) {
    if (worker.fd >= 0) stop(worker, true);
  }
}

}  // namespace oclc::tool
