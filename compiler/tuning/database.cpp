#include "compiler/tuning/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <charconv>
#include <filesystem>

#include "compiler/support/error.h"
#include "compiler/tuning/calibration.h"

namespace oclc {
namespace {

constexpr int kSchema = 1, kBusyMilliseconds = 5000;
constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS trials (device TEXT NOT NULL, family TEXT NOT NULL, vendor TEXT NOT NULL, key TEXT NOT NULL, "
    "choice TEXT NOT NULL, seconds REAL NOT NULL, modelled INTEGER NOT NULL, note TEXT NOT NULL, "
    "PRIMARY KEY (device, family, key, choice)) WITHOUT ROWID";
constexpr const char* kColumns = "SELECT device, family, vendor, key, choice, seconds, modelled, note FROM trials";

[[noreturn]] void failed(sqlite3* db, const std::string& file, const std::string& doing) {
  const int code = db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
  const bool damaged = code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR || code == SQLITE_MISMATCH;
  throw CompileError({.stage = "tuning",
                      .wanted = fmt::format("'{}' to be {}", file, damaged ? "a database of tuned choices" : doing),
                      .found = db ? sqlite3_errmsg(db) : "no memory",
                      .advice = damaged ? "remove the file, or tune into another one" : "",
                      .exit_code = damaged ? ExitCode::bad_model : ExitCode::io});
}

class Statement {
 public:
  Statement(sqlite3* db, const std::string& file, const std::string& text) : db_(db), file_(file) {
    if (sqlite3_prepare_v2(db, text.c_str(), -1, &statement_, nullptr) != SQLITE_OK) failed(db, file, "a statement");
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int at, const std::string& text) {
    sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  void bind(int at, double value) { sqlite3_bind_double(statement_, at, value); }
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) failed(db_, file_, "to read or write trials");
    return code == SQLITE_ROW;
  }
  std::string text(int at) const {
    const auto* from = reinterpret_cast<const char*>(sqlite3_column_text(statement_, at));
    return from ? std::string(from, static_cast<std::size_t>(sqlite3_column_bytes(statement_, at))) : std::string();
  }
  double number(int at) const { return sqlite3_column_double(statement_, at); }

 private:
  sqlite3* db_;
  const std::string& file_;
  sqlite3_stmt* statement_ = nullptr;
};

std::pair<TunedDevice, Trial> row_of(const Statement& s) {
  return {{s.text(0), s.text(1), s.text(2)}, {s.text(3), parse_choice(s.text(4)), s.number(5), s.number(6) != 0, s.text(7)}};
}

}  // namespace

std::string choice_text(const TunedChoice& choice) { return fmt::format("{}", fmt::join(choice, " ")); }

TunedChoice parse_choice(const std::string& text) {
  TunedChoice choice;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ' ')) return {};
    choice.push_back(value);
    at = next == end ? end : next + 1;
  }
  return choice;
}

TuningDatabase::TuningDatabase(const std::string& file, Use use) : file_(file) {
  std::error_code ignored;
  if (use == Use::read && !std::filesystem::exists(file, ignored))
    throw CompileError({.stage = "tuning",
                        .wanted = fmt::format("'{}' to be a database of tuned choices", file),
                        .found = "no such file",
                        .advice = "oclc tune makes one",
                        .exit_code = ExitCode::io});
  const int flags = use == Use::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  try {
    if (sqlite3_open_v2(file.c_str(), &db_, flags, nullptr) != SQLITE_OK) failed(db_, file, "a file that can be opened");
    sqlite3_busy_timeout(db_, kBusyMilliseconds);
    Statement version(db_, file_, "PRAGMA user_version");
    version.step();
    const auto found = static_cast<int>(version.number(0));
    if (found > kSchema)
      throw CompileError({.stage = "tuning",
                          .wanted = fmt::format("'{}' to be a database of schema {}", file, kSchema),
                          .found = fmt::format("schema {}, of a newer oclc", found),
                          .advice = "tune into another file",
                          .exit_code = ExitCode::bad_model});
    if (use == Use::write && found == 0) {
      Statement(db_, file_, kTable).step();
      Statement(db_, file_, fmt::format("PRAGMA user_version = {}", kSchema)).step();
    }
    Statement(db_, file_, kColumns);  // its columns are there
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

TuningDatabase::~TuningDatabase() { sqlite3_close(db_); }

void TuningDatabase::add(const TunedDevice& device, const Trial& trial) {
  Statement s(db_, file_, "INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  s.bind(1, device.name);
  s.bind(2, device.family);
  s.bind(3, device.vendor);
  s.bind(4, trial.key);
  s.bind(5, choice_text(trial.choice));
  s.bind(6, trial.seconds);
  s.bind(7, trial.modelled ? 1.0 : 0.0);
  s.bind(8, trial.note);
  s.step();
}

std::vector<Trial> TuningDatabase::trials(const TunedDevice& device) const {
  Statement s(db_, file_, std::string(kColumns) + " WHERE device = ? AND family = ?");
  s.bind(1, device.name);
  s.bind(2, device.family);
  std::vector<Trial> list;
  while (s.step()) list.push_back(row_of(s).second);
  return list;
}

std::vector<std::pair<TunedDevice, Trial>> TuningDatabase::all() const {
  Statement s(db_, file_, std::string(kColumns) + " ORDER BY device, family, key, seconds, choice");
  std::vector<std::pair<TunedDevice, Trial>> list;
  while (s.step()) list.push_back(row_of(s));
  return list;
}

Tuning TuningDatabase::best_for(const TunedDevice& device) const {
  struct Best {
    int distance;
    double seconds;
  };
  std::map<std::string, Best> best;
  Tuning tuning;
  for (const auto& [where, trial] : all()) {
    if (is_calibration(trial.key) || !trial.note.empty() || trial.choice.empty() || !(trial.seconds > 0)) continue;
    const int distance = where.family == device.family   ? (where.name == device.name ? 0 : 1)
                         : where.vendor == device.vendor ? 2
                                                         : 3;
    const auto [at, fresh] = best.emplace(trial.key, Best{distance, trial.seconds});
    if (!fresh && std::pair(distance, trial.seconds) >= std::pair(at->second.distance, at->second.seconds)) continue;
    at->second = {distance, trial.seconds};
    tuning.choices[trial.key] = trial.choice;
  }
  return tuning;
}

}  // namespace oclc
