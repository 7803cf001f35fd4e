// The contract of precision: what kernels may make of single precision's sums of products. It is a wish about results, no fact
// of a device; a device's units are taken where the contract allows what they compute.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace oclc {

enum class Contract { strict, fp32, fast, tf32, bf16 };

// How products of floats are computed where a matrix unit has less precise operands: not there, there in parts that are as
// accurate as fma, there on rounded operands.
enum class Products { fma, split, rounded };

struct Precision {
  Contract contract = Contract::fp32;
  Products products = Products::split;
  // On units that multiply bfloat16: products of parts that a product of floats is made of, 6, 3 or 1; 0: none, fma alone.
  int bf16_products = 6;
  // Sums of products keep their rounding small also where that takes time: short chains.
  bool blocked_summation = false;
  // Largest error of a network that choices of algorithms may add, relative to its largest result; 0: no more than fused
  // multiply-adds make.
  double error = 5e-6;

  // Matrix units multiply parts of floats, or rounded ones.
  bool splits_operands() const { return products == Products::split; }
  bool rounds_operands() const { return products == Products::rounded; }
  // Three products or six of parts may be products of integers of three bytes.
  bool allows_limbs() const { return bf16_products >= 3 && !blocked_summation; }
  // Of products of integers that bfloat16 holds: one product is exact, and nothing else may round them.
  Precision of_integers() const;
  // Algorithms that round otherwise than sums of products do, such as Winograd's.
  bool may_transform() const { return contract != Contract::strict; }
  // Weights and operands may be rounded within `error`.
  bool may_round() const { return error > 0 && !(contract == Contract::fp32 && blocked_summation); }
};

// The contract's name on the command line and in plans.
std::string_view name_of(Contract contract);
// CompileError (usage) listing the names if there is none of that name.
Contract find_contract(std::string_view name);
// All of their names, in their order.
std::vector<std::string> contract_names();
// `trains`: the module updates states. Deep networks amplify the rounding of their first training steps, and where an
// activation lies near zero its sign decides a gradient: sums are careful.
Precision precision_under(Contract contract, bool trains = false);

}  // namespace oclc
