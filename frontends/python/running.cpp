#include "frontends/python/handles.h"
#include "runtime/device/opencl.h"

namespace oclc::python {

namespace cl = oclc::runtime;

Running::Running(std::shared_ptr<Session> session, _cl_event* event, std::vector<HeldTensor> memory)
    : session_(std::move(session)), event_(event), memory_(std::move(memory)) {}

// The memory must outlive the run.
Running::~Running() {
  try {
    wait();
  } catch (const RuntimeError&) {
    // nobody asked for the outcome
  }
}

void Running::wait() {
  if (!event_) return;
  cl_int code = CL_SUCCESS;
  {
    const nanobind::gil_scoped_release released;
    code = cl::clWaitForEvents(1, &event_);
  }
  cl::clReleaseEvent(event_);
  event_ = nullptr;
  if (code != CL_SUCCESS) throw RuntimeError(OCLC_E_DEVICE, code, "the run failed: OpenCL error " + std::to_string(code));
}

bool Running::done() const {
  if (!event_) return true;
  cl_int status = CL_QUEUED;
  cl::clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status == CL_COMPLETE || status < 0;
}

}  // namespace oclc::python
