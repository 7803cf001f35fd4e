// The table of strategies: what it ranks for products in numbers, and what it says of those that it refuses.
#include "compiler/contraction/strategy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "compiler/contraction/tuned_row.h"
#include "compiler/targets/costs.h"
#include "compiler/targets/target.h"
#include "compiler/targets/tuning.h"

namespace oclc {
namespace {

Extent known(std::int64_t n) { return {n, n, true}; }

// C[m, n] = A[m, k] B[k, n], floats that lie row by row.
Problem product(std::int64_t m, std::int64_t n, std::int64_t k, bool constant_b) {
  Problem p;
  p.m = known(m);
  p.n = known(n);
  p.k = known(k);
  const auto whole = [](std::int64_t extent) { return VectorWidths{1 | 4 | 8 | 16, extent}; };
  p.a.in_place = p.a.terms_step = true;
  p.a.term_stride = 1;
  p.a.of_terms = whole(k);
  p.a.one_row_axis = true;
  p.a.row_step = k;
  p.b.in_place = p.b.terms_step = p.b.unit_columns = p.b.taps_follow = p.b.starts_rows = true;
  p.b.in_constant = p.b.constant = constant_b;
  p.b.term_stride = n;
  p.b.column_stride = 1;
  p.b.of_outputs = whole(n);
  p.product = {1, m, n, k};
  p.line_rows = m;
  p.a.loads.width = p.b.loads.width = 4;
  p.b.loads.along_k = false;
  return p;
}

Target target_under(const char* name, Contract contract) {
  Target target = find_target(name);
  target.precision = precision_under(contract, false);
  return target;
}

StrategyId best(const Problem& problem, const Target& target) { return rank(problem, target).front().strategy->id; }

const Candidate& candidate(const std::vector<Candidate>& all, StrategyId strategy) {
  return *std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.strategy->id == strategy; });
}

TEST_CASE("every row has a name of its own, by which it is found") {
  std::set<std::string_view> names;
  for (const Strategy& row : strategies()) {
    CHECK(names.insert(name_of(row.id)).second);
    CHECK(strategy_named(name_of(row.id)) == row.id);
    CHECK(&row_of(row.id) == &row);
    CHECK_FALSE(row.about.empty());
  }
  CHECK_FALSE(strategy_named("no strategy"));
}

TEST_CASE("each row has a choice or a sentence that says why not, the best has a choice, and seconds ascend in an order") {
  for (const Target& target : target_rows()) {
    CAPTURE(target.name);
    for (const bool constant : {true, false}) {
      const auto all = rank(product(197, 768, 768, constant), target);
      CHECK(all.size() == strategies().size());
      REQUIRE(all.front().choice);
      for (std::size_t i = 0; i < all.size(); ++i) {
        CAPTURE(name_of(all[i].strategy->id));
        CHECK(all[i].choice.has_value() == all[i].why_not.empty());
        if (!all[i].choice) continue;
        CHECK(all[i].choice->strategy == all[i].strategy->id);
        CHECK(all[i].choice->text().starts_with(name_of(all[i].strategy->id)));
        if (i == 0) continue;
        REQUIRE(all[i - 1].choice);
        CHECK(all[i - 1].strategy->order <= all[i].strategy->order);
        if (all[i - 1].strategy->order == all[i].strategy->order) CHECK(all[i - 1].choice->seconds <= all[i].choice->seconds);
      }
    }
  }
}

TEST_CASE("few rows read a large right operand of run time once, many rows, small and constant ones do not") {
  const Target& cpu = find_target("cpu");
  CHECK(best(product(4, 2048, 2048, false), cpu) == StrategyId::few_rows);
  for (const auto& [p, why] : {std::pair(product(48, 2048, 2048, false), "many rows pay for a copy of B"),
                               std::pair(product(4, 2048, 2048, true), "B is a constant, which is packed"),
                               std::pair(product(4, 32, 2048, false), "few columns or terms"),
                               std::pair(product(4, 64, 64, false), "B is small, or its columns are no neighbours")}) {
    const auto all = rank(p, cpu);
    CHECK(all.front().strategy->id != StrategyId::few_rows);
    CHECK(candidate(all, StrategyId::few_rows).why_not == why);
  }
}

TEST_CASE("tile units are taken where they gain, and refused without them, or under a contract that excludes them") {
  const Problem large = product(1024, 1024, 1024, true), small = product(8, 16, 8, true);
  const Target amx = target_under("cpu-amx", Contract::fp32), strict = target_under("cpu-amx", Contract::strict);
  const StrategyId chosen = best(large, amx);
  CHECK((chosen == StrategyId::amx_rows || chosen == StrategyId::amx_limbs));
  CHECK(best(small, amx) == StrategyId::fma_in_place);
  CHECK(candidate(rank(small, amx), StrategyId::amx_rows).why_not == "fused multiply-adds are as fast by estimate");
  for (const Target& other : {strict, target_under("cpu", Contract::fp32)}) {
    const auto all = rank(large, other);
    CHECK(all.front().strategy->order > row_of(StrategyId::amx_rows).order);
    CHECK(candidate(all, StrategyId::amx_rows).why_not == "needs tile units that the contract of precision allows");
  }
  CHECK(candidate(rank(large, find_target("gpu")), StrategyId::amx_rows).why_not == "needs a CPU");
}

TEST_CASE("Winograd's transforms are taken where a pass asks for them, and the image allows them") {
  Problem p = product(56 * 56, 64, 64, true);
  p.taps = 9;
  p.a.guarded = true;
  Window window;
  window.y = {64, 1, 1, 56, 3, 1, 56};
  window.x = window.y;
  p.window = window;
  const Target& cpu = find_target("cpu");
  CHECK(best(p, cpu) != StrategyId::winograd_4);
  CHECK(candidate(rank(p, cpu), StrategyId::winograd_4).why_not.starts_with("no pass asks for it"));
  p.asked = StrategyId::winograd_4;
  CHECK(best(p, cpu) == StrategyId::winograd_4);
  CHECK(candidate(rank(p, target_under("cpu-amx", Contract::fp32)), StrategyId::amx_window).why_not ==
        "a pass asks for Winograd's transforms");
  p.window->x.stride = 2;
  CHECK(best(p, cpu) != StrategyId::winograd_4);
  p.window = window;
  p.b.constant = p.b.in_constant = false;
  CHECK(best(p, cpu) != StrategyId::winograd_4);
  p.b.filters_given = true;
  CHECK_FALSE(candidate(rank(p, cpu), StrategyId::winograd_2).choice);
}

TEST_CASE("a target that counts loops has loops alone") {
  const auto all = rank(product(64, 64, 64, true), find_target("llvmpipe"));
  CHECK(all.front().strategy->id == StrategyId::loops);
  CHECK(std::count_if(all.begin(), all.end(), [](const Candidate& c) { return c.choice.has_value(); }) == 1);
  CHECK(candidate(all, StrategyId::fma_in_place).why_not == "the target counts loop iterations");
}

TEST_CASE("a GPU's row is that of the tiles of least time, and small GEMMs wait for a pass") {
  Problem p = product(4096, 4096, 4096, true);
  p.a.loads.is_copied = p.a.loads.splits = true;
  CHECK(best(p, target_under("h200", Contract::fp32)) == StrategyId::wgmma_f16x2);
  CHECK(best(p, target_under("h200", Contract::tf32)) == StrategyId::wgmma_f16);
  CHECK(best(p, target_under("h200", Contract::strict)) == StrategyId::simt);
  CHECK(best(p, find_target("gpu")) == StrategyId::simt);
  Problem small = product(49, 160, 960, true);
  small.small_gemm = SmallGemm{1, 49, 160, 960};
  CHECK(candidate(rank(small, find_target("h200")), StrategyId::small_gemm).why_not.starts_with("no pass asks for it"));
  small.asked = StrategyId::small_gemm;
  small.b.loads.along_k = true;
  CHECK(best(small, find_target("h200")) == StrategyId::small_gemm);
  small.a.loads.along_k = false;
  CHECK(best(small, find_target("h200")) != StrategyId::small_gemm);
}

TEST_CASE("rows that lose by estimate are planned where they are asked for, behind those that do not") {
  for (const Target& target : target_rows()) {
    CAPTURE(target.name);
    for (const bool constant : {true, false}) {
      const Problem p = product(197, 768, 768, constant);
      const auto usual = rank(p, target), all = rank(p, target, Losers::planned);
      CHECK(all.front().strategy == usual.front().strategy);
      bool loses = false;
      for (const Candidate& c : all) {
        CAPTURE(name_of(c.strategy->id));
        const Candidate& same = candidate(usual, c.strategy->id);
        CHECK(c.is_taken() == same.choice.has_value());
        if (c.choice) CHECK(c.why_not == same.why_not);
        CHECK((c.choice || !c.why_not.empty()));
        CHECK(same.others.empty());
        CHECK_FALSE((loses && c.is_taken()));
        loses = loses || !c.is_taken();
      }
    }
  }
  const auto all = rank(product(197, 768, 768, false), target_under("cpu-amx", Contract::fp32), Losers::planned);
  for (const StrategyId id : {StrategyId::fma_in_place, StrategyId::fma_copied_a, StrategyId::fma_copied_b, StrategyId::chunks,
                              StrategyId::few_rows, StrategyId::amx_chunks})
    CHECK_MESSAGE(candidate(all, id).choice.has_value(), name_of(id));
  CHECK_FALSE(candidate(all, StrategyId::winograd_2).choice);
}

TEST_CASE("a GPU's rows have all tiles of their units, each once, and under TF32 exact ones") {
  Problem p = product(197, 768, 3072, true);
  p.a.loads.is_copied = p.a.loads.splits = true;
  for (const Contract contract : {Contract::fp32, Contract::tf32}) {
    const auto all = rank(p, target_under("h200", contract), Losers::planned);
    const Candidate &f16 = candidate(all, StrategyId::wgmma_f16), &f16x2 = candidate(all, StrategyId::wgmma_f16x2);
    CHECK(f16.choice.has_value() == (contract == Contract::tf32));
    REQUIRE(f16x2.choice);
    CHECK(f16x2.others.size() == 5);
    CHECK(std::get<GpuChoice>(f16x2.choice->tiles).products == Products::split);
    CHECK(candidate(all, StrategyId::simt).choice);
    for (const Choice& other : f16x2.others) CHECK(other.text() != f16x2.choice->text());
  }
}

TEST_CASE("by estimate no product takes much longer under TF32 than under fp32") {
  const Target fp32 = target_under("h200", Contract::fp32), tf32 = target_under("h200", Contract::tf32);
  for (const std::int64_t rows : {8, 49, 197, 1568, 6272}) {
    for (const std::int64_t columns : {24, 64, 160, 768, 3072}) {
      for (const std::int64_t terms : {32, 64, 320, 768, 3072}) {
        for (const bool copied : {true, false}) {
          Problem p = product(rows, columns, terms, true);
          p.a.loads.is_copied = p.a.loads.splits = copied;
          const Choice exact = *rank(p, fp32).front().choice, rounded = *rank(p, tf32).front().choice;
          const auto& tiles = std::get<GpuChoice>(exact.tiles);
          const double store = tiles.sm90a ? sm90a_store_seconds(p.product, *tiles.sm90a, fp32) : 0;
          CAPTURE(exact.text());
          CAPTURE(rounded.text());
          CHECK(cost::kExactGain * rounded.seconds <= exact.seconds + store);
        }
      }
    }
  }
  // Operands that another kernel has packed for rounded products stay theirs.
  Problem packed = product(197, 768, 768, true);
  packed.b.packed_at_run_time = true;
  CHECK(std::get<GpuChoice>(rank(packed, tf32).front().choice->tiles).products == Products::rounded);
}

TEST_CASE("a row that was timed is taken where it is legal, and asked for with all others") {
  const Problem p = product(197, 768, 768, false);
  Target target = find_target("cpu");
  const std::string key = row_key(p, target);
  CHECK(key.starts_with("row_fp32 1 197 768 768 1 0 "));
  std::vector<TunedQuestion> asked;
  const auto with = [&](const TunedChoice& choice) {
    auto tuning = std::make_shared<Tuning>();
    tuning->choices[key] = choice;
    tuning->asked = [&](const TunedQuestion& question) { asked.push_back(question); };
    target.tuning = tuning;
    return tuned_row(key, rank(p, target, Losers::planned), target);
  };
  const StrategyId usual = best(p, find_target("cpu"));
  CHECK(with({}).strategy == usual);
  CHECK(with({1, 2, 3}).strategy == usual);
  CHECK(with({123456789, 0}).strategy == usual);
  REQUIRE_FALSE(asked.empty());
  const TunedQuestion question = asked.back();
  CHECK(question.key == key);
  CHECK(question.others.front() == question.modelled);
  CHECK(question.seconds > 0);
  CHECK(question.others.size() > 4);
  std::set<StrategyId> taken;
  for (const TunedChoice& choice : question.others) taken.insert(with(choice).strategy);
  CHECK(taken.size() == question.others.size());
  CHECK(taken.count(StrategyId::loops) == 1);
  Problem open = p;
  open.m.known = false;
  CHECK(row_key(open, target).empty());
  open = p;
  open.asked = StrategyId::strassen;
  CHECK(row_key(open, target).empty());
}

}  // namespace
}  // namespace oclc
