#include "compiler/tuning/database.h"

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/support/error.h"
#include "tests/runtime/temp_dir.h"

namespace oclc::test {
namespace {

const TunedDevice kOwn{"Device 1", "cpu", "Vendor"}, kBrother{"Device 2", "cpu", "Other"}, kCousin{"Device 3", "gpu", "Vendor"},
    kStranger{"Device 4", "gpu", "Nobody"};

ExitCode failure(const std::string& file, TuningDatabase::Use use) {
  try {
    TuningDatabase(file, use);
  } catch (const CompileError& error) {
    return error.parts().exit_code;
  }
  return ExitCode::good;
}

TEST_CASE("the fastest choice that may be taken, of the nearest device") {
  const TempDir dir;
  const std::string file = (dir / "tuned.db");
  TuningDatabase db(file, TuningDatabase::Use::write);
  const auto best = [&] { return db.best_for(kOwn).choices; };
  db.add(kStranger, {"a", {4}, 0.1, false});
  CHECK(best().at("a") == TunedChoice{4});
  db.add(kCousin, {"a", {3}, 0.2, false});
  CHECK(best().at("a") == TunedChoice{3});
  db.add(kBrother, {"a", {2}, 0.3, false});
  CHECK(best().at("a") == TunedChoice{2});
  db.add(kOwn, {"a", {1}, 0.4, true});
  CHECK(best().at("a") == TunedChoice{1});
  db.add(kOwn, {"a", {5, 6}, 0.2, false});
  CHECK(best().at("a") == TunedChoice{5, 6});
  db.add(kOwn, {"a", {7}, 0.1, false, "wrong: max_rel 1e-1"});
  CHECK(best().at("a") == TunedChoice{5, 6});
  db.add(kOwn, {"a", {5, 6}, 0.5, false});  // timed again
  CHECK(best().at("a") == TunedChoice{1});
  CHECK(best().size() == 1);
  // Kept, and seen by another process meanwhile.
  const TuningDatabase other(file, TuningDatabase::Use::read);
  CHECK(other.trials(kOwn).size() == 3);
  CHECK(other.all().size() == 6);
  CHECK(other.best_for(kBrother).choices.at("a") == TunedChoice{2});
}

TEST_CASE("case 80: a database that somebody writes is waited for, and one of a newer schema is refused") {
  const TempDir dir;
  const std::string file = (dir / "tuned.db");
  TuningDatabase db(file, TuningDatabase::Use::write);
  db.add(kOwn, {"a", {1}, 0.4, false});
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  });
  db.add(kOwn, {"a", {2}, 0.3, false});
  writer.join();
  CHECK(db.trials(kOwn).size() == 2);
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  CHECK(TuningDatabase(file, TuningDatabase::Use::read).trials(kOwn).size() == 2);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  REQUIRE(sqlite3_exec(other, "PRAGMA user_version = 99", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(other);
  for (const auto use : {TuningDatabase::Use::read, TuningDatabase::Use::write})
    CHECK(failure(file, use) == ExitCode::bad_model);
}

TEST_CASE("case 80: what is no database of this schema is an error") {
  const TempDir dir;
  CHECK(failure((dir / "none.db"), TuningDatabase::Use::read) == ExitCode::io);
  CHECK(failure((dir / "no/folder.db"), TuningDatabase::Use::write) == ExitCode::io);
  std::ofstream((dir / "text.db")) << "this is no database, and long enough to be looked at: " << std::string(4096, 'x');
  CHECK(failure((dir / "text.db"), TuningDatabase::Use::write) == ExitCode::bad_model);
  CHECK(failure((dir / "text.db"), TuningDatabase::Use::read) == ExitCode::bad_model);
  std::ofstream((dir / "empty.db")) << "";
  CHECK(failure((dir / "empty.db"), TuningDatabase::Use::read) == ExitCode::bad_model);
}

TEST_CASE("choices are lists of numbers") {
  CHECK(choice_text({1, -2, 30}) == "1 -2 30");
  CHECK(parse_choice("1 -2 30") == TunedChoice{1, -2, 30});
  for (const char* text : {"", "x", "1,2", "1 99999999999999999999"}) CHECK(parse_choice(text).empty());
}

}  // namespace
}  // namespace oclc::test
