// The contract of precision, made from its name once.
#include <doctest/doctest.h>

#include <string>

#include "compiler/ir/precision.h"
#include "compiler/support/error.h"

using namespace oclc;

TEST_CASE("a contract's name finds it") {
  for (const Contract c : {Contract::strict, Contract::fp32, Contract::fast, Contract::tf32, Contract::bf16}) {
    CHECK(find_contract(name_of(c)) == c);
    CHECK(precision_under(c).contract == c);
  }
}

TEST_CASE("another text is refused with the names and advice") {
  for (const char* text : {"", "fp16", "mixed", "FP32", "fp32 "}) {
    CAPTURE(text);
    try {
      find_contract(text);
      FAIL("wanted a refusal");
    } catch (const CompileError& error) {
      const std::string what = error.what();
      CHECK(what.find("wanted a contract of precision: strict, fp32, fast, tf32, bf16") != std::string::npos);
      CHECK(what.find("found '" + std::string(text) + "'") != std::string::npos);
      CHECK(what.find("--mixed") != std::string::npos);
    }
  }
}

TEST_CASE("what is allowed grows from strict to fast") {
  const Precision strict = precision_under(Contract::strict), usual = precision_under(Contract::fp32),
                  fast = precision_under(Contract::fast);
  CHECK(strict.error < usual.error);
  CHECK(usual.error < fast.error);
  CHECK(strict.bf16_products == 0);
  CHECK(usual.bf16_products > fast.bf16_products);
  CHECK_FALSE(strict.may_transform());
  CHECK_FALSE(strict.may_round());
  CHECK(strict.blocked_summation);
  CHECK_FALSE(usual.blocked_summation);
}

TEST_CASE("training sums carefully, and rounds weights under `fast` alone") {
  CHECK(precision_under(Contract::fp32, true).blocked_summation);
  CHECK_FALSE(precision_under(Contract::fp32, true).may_round());
  CHECK(precision_under(Contract::fp32).may_round());
  CHECK(precision_under(Contract::fast, true).may_round());
  CHECK_FALSE(precision_under(Contract::fp32, true).allows_limbs());
  CHECK(precision_under(Contract::fp32).allows_limbs());
}

TEST_CASE("rounded operands leave no error to spend") {
  CHECK_FALSE(precision_under(Contract::tf32).may_round());
  CHECK_FALSE(precision_under(Contract::bf16).may_round());
  CHECK_FALSE(precision_under(Contract::bf16).allows_limbs());
}
