// oclc-builder PLATFORM DEVICE behind|beside in_turn|at_once: builds programs beside the process that started it, for drivers
// that compile one at a time in a process and keep what they compiled on disk. It reads requests from its standard input, a
// socket, and answers there; it ends when the other side does; behind, when it has also done what it was asked for. In turn:
// one process at a time builds a text. Not meant for people.
#include <CL/cl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/device/sm90a.h"
#include "runtime/handles.h"
#include "runtime/program/build_lock.h"
#include "runtime/program/builder/messages.h"
#include "runtime/program/program_binary.h"

namespace oclc::runtime {
namespace {

constexpr int kSocket = STDIN_FILENO;
// More than the counters of any launch, see schedule/megakernel.h.
constexpr std::size_t kCounterBytes = std::size_t{8} << 20;

struct Request {
  BuilderRequest head{};
  std::string first, second;
};

bool receive(void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(kSocket, at, bytes, MSG_WAITALL);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

// Read by a thread of their own, so that the other side never waits for a build to send the next one.
class Requests {
 public:
  explicit Requests(bool behind) : behind_(behind) {}
  void read() {
    for (Request next; receive(&next.head, sizeof next.head);) {
      next.first.resize(next.head.first_bytes);
      next.second.resize(next.head.second_bytes);
      if (!receive(next.first.data(), next.first.size()) || !receive(next.second.data(), next.second.size())) break;
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(next));
      changed_.notify_one();
    }
    if (!behind_) ::_exit(0);  // nobody wants what is being built
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }

  // Nothing: there will be none.
  std::optional<Request> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() || ended_; });
    if (queue_.empty()) return std::nullopt;
    Request request = std::move(queue_.front());
    queue_.pop_front();
    return request;
  }

 private:
  const bool behind_;
  bool ended_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> queue_;
};

class Device {
 public:
  Device(unsigned platform, unsigned device, bool in_turn) : in_turn_(in_turn) {
    cl_uint count = 0;
    if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || platform >= count) return;
    std::vector<cl_platform_id> platforms(count);
    if (clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return;
    if (clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || device >= count) return;
    std::vector<cl_device_id> devices(count);
    if (clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS) return;
    device_ = devices[device];
  }

  cl_int open() {
    if (context_) return CL_SUCCESS;
    if (!device_) return CL_DEVICE_NOT_FOUND;
    cl_int code = CL_SUCCESS;
    context_ = ClContext(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code));
    if (code == CL_SUCCESS) queue_ = ClQueue(clCreateCommandQueue(context_.get(), device_, 0, &code));
    std::vector<char> zeros(kCounterBytes);
    if (code == CL_SUCCESS)
      counters_ =
          ClMem(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, zeros.size(), zeros.data(), &code));
    return code;
  }

  cl_int build(const Request& request) {
    const char* text = request.second.data();
    const std::size_t bytes = request.second.size();
    cl_int code = CL_SUCCESS;
    const BuildLock lock = in_turn_ ? BuildLock(request.first, request.second) : BuildLock();
    ClProgram program(clCreateProgramWithSource(context_.get(), 1, &text, &bytes, &code));
    if (code == CL_SUCCESS) code = clBuildProgram(program.get(), 1, &device_, request.first.c_str(), nullptr, nullptr);
    if (code == CL_SUCCESS && request.head.kind == BuilderRequest::kLifted)
      program = lifted(program.get(), request.first, code);
    if (code == CL_SUCCESS) programs_[request.head.unit] = std::move(program);
    return code;
  }

  // Compiled by a launch of one group, as drivers do when a kernel first runs. The two last arguments choose no step at all, so
  // that it touches its counters alone, whatever stands for the other buffers.
  cl_int compile(const Request& request) {
    const auto program = programs_.find(request.head.unit);
    if (program == programs_.end()) return CL_INVALID_PROGRAM;
    cl_int code = CL_SUCCESS;
    const ClKernel kernel(clCreateKernel(program->second.get(), request.first.c_str(), &code));
    cl_uint count = 0;
    if (code == CL_SUCCESS) code = clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
    for (cl_uint i = 0; code == CL_SUCCESS && i < count; ++i) code = set_argument(kernel.get(), i);
    const std::size_t one = 1;
    if (code == CL_SUCCESS)
      code = clEnqueueNDRangeKernel(queue_.get(), kernel.get(), 1, nullptr, &one, &one, 0, nullptr, nullptr);
    return code == CL_SUCCESS ? clFinish(queue_.get()) : code;
  }

 private:
  ClProgram lifted(cl_program program, const std::string& options, cl_int& code) {
    const std::vector<unsigned char> binary = binary_of(program);
    const std::string ptx = lifted_to_sm90a({reinterpret_cast<const char*>(binary.data()), binary.size()});
    ClProgram result;
    code = ptx.empty() ? CL_INVALID_BINARY
                       : build_binary(context_.get(), device_, {reinterpret_cast<const unsigned char*>(ptx.data()), ptx.size()},
                                      options, result);
    return result;
  }

  cl_int set_argument(cl_kernel kernel, cl_uint index) {
    cl_kernel_arg_address_qualifier space = 0;
    char type[64] = "";
    cl_int code = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, nullptr);
    if (code != CL_SUCCESS) return code;
    if (space == CL_KERNEL_ARG_ADDRESS_GLOBAL) {
      const cl_mem counters = counters_.get();
      return clSetKernelArg(kernel, index, sizeof counters, &counters);
    }
    if (space != CL_KERNEL_ARG_ADDRESS_PRIVATE) return CL_INVALID_ARG_VALUE;
    code = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, nullptr);
    if (code != CL_SUCCESS) return code;
    const cl_long zero = 0;
    return clSetKernelArg(kernel, index, std::string_view(type) == "int" ? sizeof(cl_int) : sizeof zero, &zero);
  }

  const bool in_turn_;
  cl_device_id device_ = nullptr;
  ClContext context_;
  ClQueue queue_;
  ClMem counters_;
  std::map<std::uint32_t, ClProgram> programs_;
};

int serve(unsigned platform, unsigned number, bool behind, bool in_turn) {
  Requests requests(behind);
  std::thread([&] { requests.read(); }).detach();
  Device device(platform, number, in_turn);
  while (const auto request = requests.next()) {
    const std::uint32_t kind = request->head.kind;
    cl_int status = device.open();
    if (status != CL_SUCCESS) return 1;
    if (kind != BuilderRequest::kOpen)
      status = kind == BuilderRequest::kKernel ? device.compile(*request) : device.build(*request);
    const BuilderReply reply{kind, request->head.unit, status};
    if (::send(kSocket, &reply, sizeof reply, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof reply) && !behind) return 0;
  }
  return 0;
}

}  // namespace
}  // namespace oclc::runtime

// Leaves the cores to what answers, and still gets a fourth of one that never rests.
constexpr int kBehindNice = 6;

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const bool behind = std::string_view(argv[3]) == "behind", in_turn = std::string_view(argv[4]) == "in_turn";
  // Nobody's child, so that nobody has to wait for its end.
  if (::fork() != 0) return 0;
  if (behind) {
    [[maybe_unused]] const int level = ::nice(kBehindNice);
  }
  const int code = oclc::runtime::serve(static_cast<unsigned>(std::atoi(argv[1])), static_cast<unsigned>(std::atoi(argv[2])),
                                        behind, in_turn);
  ::_exit(code);  // the driver's threads are at work perhaps
}
