#include "frontends/onnx/model/prescan.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <array>
#include <string_view>

#include "frontends/onnx/fail.h"

namespace oclc::onnx {
namespace {

enum Message {
  model,
  graph,
  node,
  attribute,
  tensor,
  sparse,
  value_info,
  type,
  tensor_type,
  sequence,
  map,
  shape,
  dim,
  function,
  entry,
  opset,
  other
};

enum class Holds {
  name,     // a name: bounded in length
  text,     // any other string or bytes
  data,     // a tensor's payload: costs as much as it is long
  packed4,  // numbers of four bytes each, one byte or more in the file
  packed8,  // numbers of eight bytes
  message,
};

struct Field {
  Message in;
  std::uint32_t number;
  Holds holds;
  Message child = other;
};

// Fields of oclc_onnx.proto that are length-delimited. Others cost no more memory than they take in the file, within a small
// factor, and so do fields that it does not list.
constexpr Field kFields[] = {
    {model, 2, Holds::text},
    {model, 3, Holds::text},
    {model, 4, Holds::text},
    {model, 6, Holds::text},
    {model, 7, Holds::message, graph},
    {model, 8, Holds::message, opset},
    {model, 14, Holds::message, entry},
    {model, 25, Holds::message, function},
    {graph, 1, Holds::message, node},
    {graph, 2, Holds::name},
    {graph, 5, Holds::message, tensor},
    {graph, 11, Holds::message, value_info},
    {graph, 12, Holds::message, value_info},
    {graph, 13, Holds::message, value_info},
    {graph, 15, Holds::message, sparse},
    {node, 1, Holds::name},
    {node, 2, Holds::name},
    {node, 3, Holds::name},
    {node, 4, Holds::name},
    {node, 5, Holds::message, attribute},
    {node, 7, Holds::name},
    {node, 8, Holds::name},
    {attribute, 1, Holds::name},
    {attribute, 4, Holds::text},
    {attribute, 5, Holds::message, tensor},
    {attribute, 6, Holds::message, graph},
    {attribute, 7, Holds::packed4},
    {attribute, 8, Holds::packed8},
    {attribute, 9, Holds::text},
    {attribute, 10, Holds::message, tensor},
    {attribute, 11, Holds::message, graph},
    {attribute, 14, Holds::message, type},
    {attribute, 15, Holds::message, type},
    {attribute, 21, Holds::name},
    {attribute, 22, Holds::message, sparse},
    {attribute, 23, Holds::message, sparse},
    {tensor, 1, Holds::packed8},
    {tensor, 3, Holds::message, other},
    {tensor, 4, Holds::data},
    {tensor, 5, Holds::packed4},
    {tensor, 6, Holds::text},
    {tensor, 7, Holds::packed8},
    {tensor, 8, Holds::name},
    {tensor, 9, Holds::data},
    {tensor, 10, Holds::data},
    {tensor, 11, Holds::packed8},
    {tensor, 13, Holds::message, entry},
    {sparse, 1, Holds::message, tensor},
    {sparse, 2, Holds::message, tensor},
    {sparse, 3, Holds::packed8},
    {value_info, 1, Holds::name},
    {value_info, 2, Holds::message, type},
    {type, 1, Holds::message, tensor_type},
    {type, 4, Holds::message, sequence},
    {type, 5, Holds::message, map},
    {type, 8, Holds::message, tensor_type},
    {type, 9, Holds::message, sequence},
    {tensor_type, 2, Holds::message, shape},
    {sequence, 1, Holds::message, type},
    {map, 2, Holds::message, type},
    {shape, 1, Holds::message, dim},
    {dim, 2, Holds::name},
    {function, 1, Holds::name},
    {function, 4, Holds::name},
    {function, 5, Holds::name},
    {function, 6, Holds::name},
    {function, 7, Holds::message, node},
    {function, 9, Holds::message, opset},
    {function, 10, Holds::name},
    {function, 11, Holds::message, attribute},
    {function, 13, Holds::name},
    {entry, 1, Holds::text},
    {entry, 2, Holds::text},
    {opset, 1, Holds::name},
};

constexpr std::uint32_t kMostFields = 32;

const Field* field_of(Message in, std::uint32_t number) {
  static const auto table = [] {
    std::array<std::array<const Field*, kMostFields>, other + 1> by_number{};
    for (const Field& f : kFields) by_number[f.in][f.number] = &f;
    return by_number;
  }();
  return number < kMostFields ? table[in][number] : nullptr;
}

std::int64_t memory_of(Message kind) {
  constexpr std::size_t kPointer = sizeof(void*) * 2;  // its place in a list, and the allocator's head
  std::size_t bytes = sizeof(oclc_onnx::OperatorSetIdProto);
  switch (kind) {
    case model:
      bytes = sizeof(oclc_onnx::ModelProto);
      break;
    case graph:
      bytes = sizeof(oclc_onnx::GraphProto);
      break;
    case node:
      bytes = sizeof(oclc_onnx::NodeProto);
      break;
    case attribute:
      bytes = sizeof(oclc_onnx::AttributeProto);
      break;
    case tensor:
      bytes = sizeof(oclc_onnx::TensorProto);
      break;
    case sparse:
      bytes = sizeof(oclc_onnx::SparseTensorProto);
      break;
    case value_info:
      bytes = sizeof(oclc_onnx::ValueInfoProto);
      break;
    case type:
      bytes = sizeof(oclc_onnx::TypeProto);
      break;
    case tensor_type:
      bytes = sizeof(oclc_onnx::TypeProto_Tensor);
      break;
    case sequence:
      bytes = sizeof(oclc_onnx::TypeProto_Sequence);
      break;
    case map:
      bytes = sizeof(oclc_onnx::TypeProto_Map);
      break;
    case shape:
      bytes = sizeof(oclc_onnx::TensorShapeProto);
      break;
    case dim:
      bytes = sizeof(oclc_onnx::TensorShapeProto_Dimension);
      break;
    case function:
      bytes = sizeof(oclc_onnx::FunctionProto);
      break;
    case entry:
      bytes = sizeof(oclc_onnx::StringStringEntryProto);
      break;
    case opset:
    case other:
      break;
  }
  return static_cast<std::int64_t>(bytes + kPointer);
}

class Scanner {
 public:
  Scanner(std::span<const std::byte> bytes, const ImportLimits& limits) : bytes_(bytes), limits_(limits) {}

  Counts run() {
    message(model, 0, bytes_.size(), 0, 0);
    return counts_;
  }

 private:
  static constexpr int kDeepest = 100;  // protobuf's own limit

  [[noreturn]] void malformed(std::size_t at, const std::string& what) const {
    fail("an ONNX model", fmt::format("{} at byte {} of {}", what, at, bytes_.size()),
         "the file is damaged or of another kind");
  }

  [[noreturn]] static void over(const std::string& what, std::int64_t limit, std::int64_t found) {
    fail(fmt::format("at most {} {}", limit, what), std::to_string(found),
         "the limit is there against damaged and hostile files");
  }

  std::uint64_t varint(std::size_t& at, std::size_t end) const {
    const std::size_t start = at;
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= end) malformed(start, "a truncated number");
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at++]);
      if (shift < 64) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    malformed(start, "a number of more than 10 bytes");
  }

  // The end of a length-delimited field whose length starts at `at`.
  std::size_t delimited(std::size_t& at, std::size_t end) const {
    const std::size_t start = at;
    const std::uint64_t length = varint(at, end);
    if (length > end - at) malformed(start, fmt::format("a field of {} bytes where {} are left", length, end - at));
    return at + static_cast<std::size_t>(length);
  }

  void skip(std::size_t& at, std::size_t end, std::uint32_t wire, std::size_t tag_at) const {
    switch (wire) {
      case 0:
        varint(at, end);
        return;
      case 1:
      case 5: {
        const std::size_t size = wire == 1 ? 8 : 4;
        if (size > end - at) malformed(tag_at, "a truncated number");
        at += size;
        return;
      }
      case 2:
        at = delimited(at, end);
        return;
      default:
        malformed(tag_at, fmt::format("a field of unknown wire type {}", wire));
    }
  }

  // Groups are an old encoding that ONNX does not use; unknown ones are skipped.
  void skip_group(std::size_t& at, std::size_t end, std::size_t tag_at) const {
    for (int open = 1; open > 0;) {
      if (at >= end) malformed(tag_at, "a group without an end");
      const std::size_t inner_at = at;
      const std::uint64_t tag = varint(at, end);
      const auto wire = static_cast<std::uint32_t>(tag & 7);
      if (wire == 3) {
        if (++open > kDeepest) malformed(inner_at, fmt::format("more than {} nested groups", kDeepest));
      } else if (wire == 4) {
        --open;
      } else {
        skip(at, end, wire, inner_at);
      }
    }
  }

  void charge(std::int64_t bytes) {
    counts_.message_bytes += bytes;
    if (counts_.message_bytes > limits_.message_bytes) {
      fail(fmt::format("a model whose nodes and names need at most {} bytes of memory", limits_.message_bytes), "more",
           "the limit is there against damaged and hostile files");
    }
  }

  void field(const Field& rule, std::size_t at, std::size_t end, int depth, int graphs, std::int64_t& attributes) {
    constexpr std::int64_t kString = 48;  // std::string and its place in a list
    const auto size = static_cast<std::int64_t>(end - at);
    switch (rule.holds) {
      case Holds::name:
        if (size > limits_.name_bytes) {
          const std::string_view name(reinterpret_cast<const char*>(bytes_.data() + at), 40);
          fail(fmt::format("names of at most {} bytes", limits_.name_bytes),
               fmt::format("one of {} bytes that starts with '{}'", size, printable(name)));
        }
        charge(kString + size);
        return;
      case Holds::text:
        charge(kString + size);
        return;
      case Holds::data:
        return;
      case Holds::packed4:
        charge(size * 4);
        return;
      case Holds::packed8:
        charge(size * 8);
        return;
      case Holds::message:
        break;
    }
    if (rule.child == node && ++counts_.nodes > limits_.nodes) over("nodes", limits_.nodes, counts_.nodes);
    if (rule.child == tensor && ++counts_.tensors > limits_.tensors) over("tensors", limits_.tensors, counts_.tensors);
    if (rule.child == attribute && ++attributes > limits_.attributes_per_node) {
      over("attributes at a node", limits_.attributes_per_node, attributes);
    }
    const bool subgraph = rule.in == attribute && rule.child == graph;
    if (subgraph && graphs + 1 > limits_.subgraph_depth) {
      fail(fmt::format("sub-graphs nested at most {} deep", limits_.subgraph_depth), "deeper ones");
    }
    charge(memory_of(rule.child));
    message(rule.child, at, end, depth + 1, graphs + (subgraph ? 1 : 0));
  }

  void message(Message kind, std::size_t at, std::size_t end, int depth, int graphs) {
    if (depth > kDeepest) malformed(at, fmt::format("messages nested more than {} deep", kDeepest));
    std::int64_t attributes = 0;
    while (at < end) {
      const std::size_t tag_at = at;
      const std::uint64_t tag = varint(at, end);
      if (tag > UINT32_MAX || tag >> 3 == 0) malformed(tag_at, "a field of number 0 or out of range");
      const auto wire = static_cast<std::uint32_t>(tag & 7);
      if (wire == 3) {
        skip_group(at, end, tag_at);
        continue;
      }
      if (wire != 2) {
        skip(at, end, wire, tag_at);
        charge(8);
        continue;
      }
      const std::size_t field_end = delimited(at, end);
      if (const Field* rule = field_of(kind, static_cast<std::uint32_t>(tag >> 3))) {
        field(*rule, at, field_end, depth, graphs, attributes);
      } else {
        charge(static_cast<std::int64_t>(field_end - at) + 16);
      }
      at = field_end;
    }
  }

  std::span<const std::byte> bytes_;
  const ImportLimits& limits_;
  Counts counts_;
};

}  // namespace

Counts prescan(std::span<const std::byte> bytes, const ImportLimits& limits) { return Scanner(bytes, limits).run(); }

}  // namespace oclc::onnx
