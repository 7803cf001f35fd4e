// What problem_of_trace finds; oclrun_test.cpp and the check's traces are judged by it.
#include "tests/oclrun/trace_format.h"

#include <doctest/doctest.h>

using namespace oclc::test;
using nlohmann::json;

namespace {

json good() {
  return json::parse(R"({"displayTimeUnit": "ms", "traceEvents": [
    {"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": "p"}},
    {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "t"}},
    {"ph": "X", "pid": 1, "tid": 1, "name": "a", "cat": "c", "ts": 0, "dur": 10.5, "args": {}},
    {"ph": "X", "pid": 1, "tid": 1, "name": "inner", "cat": "c", "ts": 2, "dur": 3, "args": {}},
    {"ph": "X", "pid": 1, "tid": 1, "name": "b", "cat": "c", "ts": 10.5, "dur": 1, "args": {}}]})");
}

std::string with(const std::string& pointer, const json& value) {
  json trace = good();
  trace[json::json_pointer(pointer)] = value;
  return problem_of_trace(trace);
}

std::string without(std::size_t event, const std::string& key) {
  json trace = good();
  if (key.empty())
    trace["traceEvents"].erase(event);
  else
    trace["traceEvents"][event].erase(key);
  return problem_of_trace(trace);
}

}  // namespace

TEST_CASE("a trace as the format has it has no problem") { CHECK(problem_of_trace(good()) == ""); }

TEST_CASE("what the trace event format does not allow is found") {
  CHECK(problem_of_trace(json::array()) == "no array of events");
  CHECK(with("/extra", 1) == "the member 'extra'");
  CHECK(with("/displayTimeUnit", "us") == "a time unit that is neither ms nor ns");
  CHECK(with("/traceEvents/2/ph", "Y") == "an event of phase \"Y\"");
  CHECK(with("/traceEvents/2/colour", 1) == "an event with the member 'colour'");
  CHECK(without(2, "dur") == "an event without 'dur'");
  CHECK(with("/traceEvents/2/name", "") == "an event whose name is no text");
  CHECK(with("/traceEvents/2/tid", "1") == "an event whose pid or tid is no integer");
  CHECK(with("/traceEvents/2/args", json::array()) == "an event whose args are no object");
  CHECK(with("/traceEvents/2/ts", -1) == "an event whose ts is no number of microseconds");
  CHECK(with("/traceEvents/2/dur", "1") == "an event whose dur is no number of microseconds");
  CHECK(with("/traceEvents/0/name", "process") == "metadata called \"process\"");
  CHECK(with("/traceEvents/0/args", json::object()) == "metadata without a name");
  CHECK(without(0, "") == "a process without a name");
  CHECK(without(1, "") == "a thread without a name");
  CHECK(with("/traceEvents/3/dur", 20) == "two events of a thread that overlap");
  CHECK(with("/traceEvents/4/ts", 1) == "events of a thread that are not in the order of their beginnings");
}
