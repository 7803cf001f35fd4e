// The table of strategies: what computes a contraction, where it is legal, on which tiles, and how long it takes by estimate.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

struct Choice {
  StrategyId strategy = StrategyId::loops;
  std::variant<std::monostate, FmaTiles, ChunkTiles, FewRowsTiles, WindowTiles, WinogradTiles, StrassenTiles, QuantizedTiles,
               AmxTiles, AmxWindowTiles, AmxPairTiles, GpuChoice, ShortTiles>
      tiles;
  double seconds = 0;  // by estimate

  // One line: the strategy and its tiles.
  std::string text() const;
};

// What a target must have.
enum class TargetNeeds { nothing, cpu_vectors, amx, gpu, wgmma };

// What a row makes of a problem: a choice, or a sentence that says why not; both where the choice is legal, and another is
// taken by estimate.
struct Planned {
  std::optional<Choice> choice;
  std::string_view why_not;
  std::vector<Choice> others{};  // of other tiles, for the tuner
};

// Whether rows that lose by estimate plan a choice as well, for reports and for the tuner; compiling does without.
enum class Losers { refused, planned };

// What rows are asked about, with what several of them compare themselves with.
struct StrategyCase {
  const Problem& problem;
  const Target& target;
  Losers losers = Losers::refused;
  std::optional<FmaTiles> fma;  // fused multiply-adds on all terms at once; nothing where these cannot read the operands
  struct Amx {
    std::optional<AmxTiles> rows, limbs;
    std::optional<AmxWindowTiles> window, limb_window, patches;
    double parts_unhidden = 0, limbs_unhidden = 0;  // what weights from memory add to them
    double parts_seconds = 0, limbs_seconds = 0;    // the least of them, with that
    double fma_seconds = 0;
  };
  std::optional<Amx> amx;      // of a constant right operand
  std::vector<GpuForm> gpu{};  // the best first
};

struct Strategy {
  StrategyId id;
  std::string_view text_template, about;
  TargetNeeds needs;
  // Rows of a lower order are taken wherever they plan a choice: their plans are legal where they were measured to gain over
  // the rows behind them, or where a pass asked for them. Rows of one order compare their seconds.
  int order;
  Planned (*plan)(const StrategyCase&, StrategyId);
};

std::span<const Strategy> strategies();
const Strategy& row_of(StrategyId strategy);

struct Candidate {
  const Strategy* strategy = nullptr;
  std::optional<Choice> choice;
  std::string why_not;           // where there is no choice, or where it loses
  std::vector<Choice> others{};  // of other tiles, for the tuner
  bool is_taken() const { return choice && why_not.empty(); }
};

// All rows: those with a choice before those whose choice loses, and these before the others; the best first. Deterministic.
std::vector<Candidate> rank(const Problem& problem, const Target& target, Losers losers = Losers::refused);

}  // namespace oclc
