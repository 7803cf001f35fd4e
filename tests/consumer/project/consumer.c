/* consumer_c PLAN: runs a plan with one float input x[4] and prints its first output, in plain C99. */
#include <oclc/oclc.h>
#include <stdio.h>

static int fail(const char* what, const char* message) {
  fprintf(stderr, "%s: %s\n", what, message);
  return 1;
}

int main(int argc, char** argv) {
  oclc_error error = OCLC_INIT(oclc_error);
  oclc_plan* plan = NULL;
  oclc_context* context = NULL;
  oclc_session* session = NULL;
  const int64_t shape[1] = {4};
  float x[4] = {1, 2, 3, 4};
  float y[4] = {0};
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  oclc_binding_info output = OCLC_INIT(oclc_binding_info);
  if (argc != 2) return fail("consumer_c", "wanted PLAN");
  if (oclc_plan_load(argv[1], 0, &plan, &error) != OCLC_OK) return fail("load", error.message);
  if (oclc_context_create(NULL, &context, &error) != OCLC_OK) return fail("context", error.message);
  if (oclc_session_create(plan, context, &session, &error) != OCLC_OK) return fail("session", error.message);
  if (oclc_plan_get_binding(plan, 0, OCLC_OUTPUT, 0, &output) != OCLC_OK) return fail("output", "there is none");
  tensor.dtype = OCLC_F32;
  tensor.rank = 1;
  tensor.shape = shape;
  tensor.bytes = sizeof x;
  tensor.host = x;
  if (oclc_session_set_input(session, 0, "x", &tensor) != OCLC_OK) return fail("input", oclc_session_message(session));
  tensor.host = y;
  if (oclc_session_set_output(session, 0, output.name, &tensor) != OCLC_OK)
    return fail("output", oclc_session_message(session));
  if (oclc_session_run(session, 0) != OCLC_OK) return fail("run", oclc_session_message(session));
  printf("%s = %g %g %g %g\n", output.name, y[0], y[1], y[2], y[3]);
  oclc_session_release(session);
  oclc_context_release(context);
  oclc_plan_release(plan);
  return 0;
}
