// Bounds of what a plan may say and of what a run of it may do on the host, a row each: loading a file and preparing a session
// take time and memory in proportion to the file, whatever it says.
#pragma once
#include <cstdint>

namespace oclc::package {

// The file.
inline constexpr std::uint32_t kMaxSymbols = 1u << 16;
inline constexpr std::uint32_t kMaxOpenSymbols = 1024;  // sizes for which memory is laid out when they are read
inline constexpr std::uint32_t kMaxBuffers = 1u << 20;
inline constexpr std::uint32_t kMaxEntries = 64;
inline constexpr std::uint32_t kMaxPorts = 1u << 14;      // inputs and outputs of an entry point
inline constexpr std::uint32_t kMaxNameBytes = 8192;      // those of models have at most 4096, the compiler appends to them
inline constexpr std::uint32_t kMaxExprWords = 1u << 14;  // of one expression
// FlatBuffers let many places refer to one text or expression. With every reference counted they have at most so many times the
// bytes of the metadata; the compiler writes each for itself.
inline constexpr std::uint64_t kMaxRepetition = 4;
inline constexpr std::uint32_t kMaxLoopDepth = 8;
inline constexpr std::uint32_t kMaxReadDims = 64;
inline constexpr std::uint32_t kMaxArgs = 1024;            // of one launch
inline constexpr std::uint32_t kMaxRowNumbers = 1u << 20;  // of one argument
inline constexpr std::uint32_t kMaxWorkGroupSize = 65536;  // of any device
inline constexpr std::uint32_t kMaxRank = 32;
inline constexpr std::uint32_t kMaxProperties = 1024;         // of the model's metadata
inline constexpr std::uint32_t kMaxPropertyBytes = 1u << 20;  // of one's value

// A run.
inline constexpr std::int64_t kMaxLoopTrips = std::int64_t{1} << 24;    // of one loop
inline constexpr std::uint64_t kMaxHostSteps = std::uint64_t{1} << 24;  // trips, launches and what the host does itself
inline constexpr std::int64_t kMaxGlobalSize = std::int64_t{1} << 31;   // work-items of a launch in one dimension, exclusive
inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 26;  // that the host's operators make
inline constexpr std::uint64_t kMaxItemsPerByte = 64;                   // work-items of a launch for each byte it may use,
inline constexpr std::uint64_t kFreeItems = std::uint64_t{1} << 20;     // beside those of any launch
inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 30;   // of a buffer whose sizes are without bound: kernels
                                                                        // count places in 32 bits, surplus rows too
// Messages.
inline constexpr std::uint64_t kMaxShownBytes = 4096;  // of an expression's text

}  // namespace oclc::package
