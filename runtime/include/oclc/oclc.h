/* oclc runtime: loads a plan.bin that oclc compiled and executes it on an OpenCL device.
 *
 * Concepts
 *   plan      a checked plan.bin: entry points, inputs and outputs, symbols (named dimensions), kernels, constants.
 *   context   an OpenCL device with a queue: chosen by oclc, or the caller's own cl_context and cl_command_queue.
 *   session   a plan on a context: kernels, scratch memory, state, and what is bound to the inputs and outputs.
 *
 * Typical use
 *   oclc_plan_load, oclc_context_create, oclc_session_create, then per run: oclc_session_set_input for each input,
 *   oclc_session_set_output for each output, oclc_session_run. A dimension such as N takes its value from the shapes of the
 * inputs; kernel arguments and memory are worked out again only when a dimension changes.
 *
 * Errors
 *   Every function that can fail returns an oclc_status. Functions that create or that belong to no session describe the
 * failure in an oclc_error of the caller (may be NULL); functions on a session keep the message there: oclc_session_message. A
 * failed call leaves its out-parameters and its handle as they were unless said otherwise. Nothing is printed, no exception and
 * no call of exit or abort leaves the library.
 *
 * Ownership
 *   Create functions give a handle that its release function takes back; release accepts NULL. Handles may be released in any
 *   order: a session keeps what it needs of its plan and context. Strings returned belong to the handle they were asked from.
 *
 * Threads
 *   Plans and contexts may be used by any number of threads at once. A session is used by one thread at a time; sessions that
 * share a plan or a context are independent. Creating a session uses several threads to build programs; none remains
 *   afterwards. With a driver that compiles one program at a time (PoCL), and programs that it has not compiled before,
 * processes (oclc-builder) compile kernels too; they end with the first run. The environment variable OCLC_BUILDERS says how
 * many there may be, 0: none. After fork() the child must not use handles of the parent; calls that would enqueue return an
 * error there.
 *
 * Plans of others
 *   Loading checks a plan in time and memory in proportion to its file, whatever it says. A run does what the plan's kernels
 * say on the plan's buffers, and what the host does for it stays within those and the memory that the caller gave: what a plan
 * says of sizes, offsets, arguments, loops and memory is checked, and is OCLC_E_PLAN, OCLC_E_BINDING or OCLC_E_MEMORY where it
 * is not so. Kernels are code; drivers for CPUs run them within the process. See SECURITY.md.
 *
 * Structs start with `size`, which the caller sets to sizeof the struct (OCLC_INIT does). Later versions append members.
 * OpenCL objects appear as `struct _cl_mem*` etc., which are cl_mem etc.: no OpenCL header is needed.
 *
 * Programs include this header; the functions stand in those of their subject: types.h (statuses, errors, versions, element
 * types), device.h, plan.h, context.h, session.h and profile.h. Training loops are in train.h.
 */
#ifndef OCLC_OCLC_H
#define OCLC_OCLC_H

#include "oclc/context.h"
#include "oclc/device.h"
#include "oclc/plan.h"
#include "oclc/profile.h"
#include "oclc/session.h"
#include "oclc/types.h"

#endif /* OCLC_OCLC_H */
