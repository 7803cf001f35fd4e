// Trials of choices on devices, in an SQLite file that several processes may use at once. What is in it is checked where it is
// used.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/targets/tuning.h"

struct sqlite3;

namespace oclc {

struct TunedDevice {
  std::string name, family, vendor;  // the family is the name of the compiler's target row
};

struct Trial {
  std::string key;
  TunedChoice choice;
  double seconds = 0;     // of the operator's launches, the fastest run
  bool modelled = false;  // what the cost model takes
  std::string note{};     // why it may not be taken: it does not compile, or its results are wrong
};

// "4 4 1 2 0"; nothing of what is no list of numbers.
std::string choice_text(const TunedChoice& choice);
TunedChoice parse_choice(const std::string& text);

class TuningDatabase {
 public:
  enum class Use { read, write };
  // Opens a database, for writing one that is made if need be. CompileError (io) if there is none to read or it cannot be
  // opened; (bad_model) if it is damaged or of a newer schema.
  TuningDatabase(const std::string& file, Use use);
  ~TuningDatabase();
  TuningDatabase(const TuningDatabase&) = delete;
  TuningDatabase& operator=(const TuningDatabase&) = delete;

  // Replaces a trial of the same device, key and choice.
  void add(const TunedDevice& device, const Trial& trial);
  // All of a device.
  std::vector<Trial> trials(const TunedDevice& device) const;
  std::vector<std::pair<TunedDevice, Trial>> all() const;
  // The fastest choice of each key that may be taken: of this device, else of its family, else of its vendor, else of any.
  Tuning best_for(const TunedDevice& device) const;

 private:
  sqlite3* db_ = nullptr;
  std::string file_;
};

}  // namespace oclc
