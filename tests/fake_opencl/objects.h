// The objects of an OpenCL that executes nothing, and what keeps watch over them.
#pragma once
#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace oclc::fake {

// Ends the process: what a driver is asked for must never come to this.
[[noreturn]] void fault(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Held during each call.
extern std::recursive_mutex mutex;

struct Object {
  explicit Object(const char* object_kind);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  const char* kind;
  long references = 1;
};

// A live object of that kind; anything else is what drivers take for a pointer and follow.
Object* checked(void* object, const char* kind, const char* call);
// Objects that are alive.
long alive();

struct Argument {
  std::string type, name;  // "float*", "x"
  cl_kernel_arg_address_qualifier space = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  bool is_const = false;
};

struct Function {
  std::string name;
  std::vector<Argument> arguments;
};

// The kernels of a text without comments and macros of its own. False where it is none.
bool parse_kernels(const std::string& source, std::vector<Function>& kernels);

}  // namespace oclc::fake

struct _cl_context : oclc::fake::Object {
  _cl_context() : Object("context") {}
};

struct _cl_command_queue : oclc::fake::Object {
  _cl_command_queue(cl_context of, cl_command_queue_properties with) : Object("queue"), context(of), properties(with) {}
  cl_context context;
  cl_command_queue_properties properties;
};

struct _cl_event : oclc::fake::Object {
  _cl_event() : Object("event") {}
  cl_ulong number = 0;
};

struct _cl_program : oclc::fake::Object {
  explicit _cl_program(std::string text) : Object("program"), source(std::move(text)) {}
  std::string source, log;
  bool built = false;
  std::vector<oclc::fake::Function> kernels;
};

struct Set {
  bool set = false;
  cl_mem memory = nullptr;
};

struct _cl_kernel : oclc::fake::Object {
  _cl_kernel(cl_program of, oclc::fake::Function the) : Object("kernel"), program(of), function(std::move(the)) {
    arguments.resize(function.arguments.size());
  }
  cl_program program;
  oclc::fake::Function function;
  std::vector<Set> arguments;
};

// Memory with canaries on both sides, unless it is the caller's.
struct _cl_mem : oclc::fake::Object {
  _cl_mem(cl_context of, cl_mem_flags with, std::size_t size, void* host);
  ~_cl_mem() override;
  void check() const;

  static constexpr std::size_t kGuard = 128;
  cl_context context;
  cl_mem_flags flags;
  std::size_t bytes;
  void* host;
  unsigned char* block = nullptr;
  unsigned char* data;
};
