#include "compiler/contraction/tuned_row.h"

#include "compiler/support/error.h"
#include "compiler/targets/tuning.h"

namespace oclc {
namespace {

// FNV-1a of the row's name: databases outlive changes of the table.
std::int64_t number_of(StrategyId strategy) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name_of(strategy)) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

struct Named {
  TunedChoice numbers;
  const Choice* choice;
};

// The choices of all rows, then further tiles.
std::vector<Named> named(const std::vector<Candidate>& ranked) {
  std::vector<Named> all;
  for (const Candidate& c : ranked)
    if (c.choice) all.push_back({{number_of(c.strategy->id), 0}, &*c.choice});
  for (const Candidate& c : ranked)
    for (std::size_t i = 0; c.choice && i < c.others.size(); ++i)
      all.push_back({{number_of(c.strategy->id), static_cast<std::int64_t>(i + 1)}, &c.others[i]});
  return all;
}

}  // namespace

std::string row_key(const Problem& p, const Target& target) {
  if (!p.g.known || !p.m.known || !p.n.known || !p.k.known || p.asked > StrategyId::implicit) return {};
  return tuning_key("row_" + std::string(name_of(target.precision.contract)),
                    {p.g.typical, p.m.typical, p.n.typical, p.k.typical, p.taps, p.b.constant ? 1 : 0, target.compute_units});
}

Choice tuned_row(const std::string& key, const std::vector<Candidate>& ranked, const Target& target) {
  const std::vector<Named> all = named(ranked);
  OCLC_CHECK(!all.empty() && ranked.front().is_taken(), "loops compute any contraction");
  TunedQuestion question{key, all.front().numbers, {}, all.front().choice->seconds};
  for (const Named& other : all) question.others.push_back(other.numbers);
  const TunedChoice* tuned = find_tuned(target, question);
  for (const Named& other : all)
    if (tuned && *tuned == other.numbers) return *other.choice;
  return *all.front().choice;
}

}  // namespace oclc
