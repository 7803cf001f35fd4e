// Bodies that run several times: what Loop and Scan say of one, and the body of a core loop in the making.
#pragma once
#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include "compiler/ops/assumptions.h"
#include "frontends/onnx/lowering.h"

namespace oclc::onnx {

constexpr std::int64_t kMostTrips = kOpenDim;

// x[at, ...], without the axis.
Value* element_of(Builder& b, Value* x, std::size_t axis, const Expr& at);
// The values as rows of a new first axis.
Value* stacked(Builder& b, const std::vector<Value*>& parts);
// An error unless the condition is one bool.
void check_condition(const OpContext& c, const Value* condition);
[[noreturn]] void condition_not_known(const OpContext& c);

// A body that runs `trips` times, as Loop and Scan have it.
struct Lowering::Repeated {
  struct Scanned {
    Value* value;
    std::size_t axis;
    bool reverse;
  };
  oclc_onnx::GraphProto& body;
  std::optional<Expr> trips;     // none: until the condition ends it
  bool conditional = false;      // the body takes the number of the trip and a condition, and gives a condition
  const Value* start = nullptr;  // the condition before the first trip, unless it is known to be true
  std::vector<Value*> carried;   // before the first trip
  std::vector<Scanned> scanned{};
  std::string label;
  bool counted = false;  // `trips` is read when the plan runs, and nothing bounds it
  bool exact = false;    // the condition holds in just so many trips
};

// The body of a core loop in the making. What does not become one is kept: what is known of its values is kept by address.
class Lowering::Body {
 public:
  Body(Lowering& lowering, const OpContext& c, Scope& around);
  ~Body();
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  // Nothing more is read into it: what is read next lies beside it, not within.
  void end();

  Value* add_input(std::string name, TensorType type) { return body_.graph->add_input(std::move(name), std::move(type)); }

  // Inputs for the values that go from trip to trip.
  std::vector<Value*> carry(const OpContext& c, const std::vector<Value*>& values);

  // The results of a trip: from `first` on, the next values of `carried`. A carried value that nothing reads but the
  // concatenation that gives its next one grows: what it grows by is one more result of the trip, behind the others.
  // Without `collect` results of trips are dropped, and what carried values grow by.
  void give(const OpContext& c, std::vector<Value*> outputs, const std::vector<Value*>& carried, std::size_t first,
            bool collect = true);
  bool grows() const { return !grown_.empty(); }
  // Whether sizes of these results are known only when the body has run.
  bool computes_sizes(const std::vector<Value*>& results) const;

  // The outputs of the loop.
  Outputs loop(OpContext& c, const Expr& trips, std::vector<Value*> carried, bool conditional = false);
  // Puts together the carried values that grew: the last of `out` are what they grew by in all trips that were made, the first
  // the carried values, which began as `initial`.
  void join_grown(OpContext& c, Outputs& out, const std::vector<Value*>& initial);

 private:
  LoopBody body_;

 public:
  const std::string counter;
  Builder builder;
  Scope scope;

 private:
  struct Grown {
    std::size_t carried;
    std::int64_t axis;
  };
  Value* growth(const Value* next, const Value* before, std::int64_t& axis);

  Lowering& lowering_;
  bool is_open_ = true;
  std::vector<Grown> grown_;
};

// The branches of an If, by whether the condition holds.
struct Lowering::Branches {
  oclc_onnx::GraphProto* graphs[2] = {};
  std::unique_ptr<Body> bodies[2];
  std::string failures[2];              // why a branch cannot be read
  std::optional<Assumptions> asked[2];  // sizes that are equal where a branch is taken
  bool sized = true;                    // the sizes of all results are known before a branch runs
};

}  // namespace oclc::onnx
