#include "tools/oclc/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace oclc::tool {
namespace {

std::atomic<int> writers{0};
std::atomic<int> waiting{0};  // the signal that came meanwhile
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  if (writers.load() > 0) {
    const int before = waiting.exchange(signal);
    if (before == 0 || signal == SIGPIPE) return;
  }
  ::_exit(128 + signal);
}

}  // namespace

void install_signal_handlers() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;  // nohup and the like
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART;
    ::sigaction(signal, &ours, nullptr);
  }
  ::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of its size is an error of writing
}

FilesBeingWritten::FilesBeingWritten() { ++writers; }

FilesBeingWritten::~FilesBeingWritten() {
  if (--writers == 0 && waiting.load() != 0) ::_exit(128 + waiting.load());
}

}  // namespace oclc::tool
