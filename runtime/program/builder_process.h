// A process of `oclc-builder`, which builds programs beside this one: see builder/messages.h for what the two say to each
// other. Not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "runtime/device/device.h"
#include "runtime/program/builder/messages.h"

namespace oclc::runtime {

class BuilderProcess {
 public:
  // At once: somebody waits for the results. Behind: nobody does; the process leaves other work its cores, and finishes what it
  // was asked for when nobody asks any more, so that it is on disk for the next start.
  enum class Pace { at_once, behind };

  // How many processes may help: one less than cores, at most 7, or OCLC_BUILDERS; 0 without the program `oclc-builder`
  // (OCLC_BUILDER, else oclc/oclc-builder beside the runtime's library).
  static unsigned available();

  BuilderProcess() = default;
  BuilderProcess(BuilderProcess&& other) noexcept : socket_(std::exchange(other.socket_, -1)), owner_(other.owner_) {}
  BuilderProcess& operator=(BuilderProcess&&) = delete;
  ~BuilderProcess() { end(); }

  // Where the system gives no process, there is none then.
  void start(const Device& device, Pace pace);
  // The other side sees the end of the socket, and ends at once or with its work. A process that forked off ours leaves them to
  // it.
  void end();
  bool runs() const { return socket_ >= 0; }
  int socket() const { return socket_; }

  // False: it has ended.
  bool ask(std::uint32_t kind, std::uint32_t unit, const std::string& first, const std::string& second);
  // An answer, if it comes in time. Requests are answered in their order. Ends what is no builder any more.
  std::optional<BuilderReply> take_reply(int timeout_ms);

 private:
  int socket_ = -1;
  int owner_ = 0;  // the process that started it
};

}  // namespace oclc::runtime
