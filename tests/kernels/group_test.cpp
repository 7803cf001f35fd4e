// Which nodes become one kernel: a graph's text in, a line a kernel out.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ir/parse.h"
#include "compiler/kernels/fusion/group.h"
#include "compiler/ops/op_list.h"

using namespace oclc;

namespace {

// "relu+add -> relu" a kernel: its nodes, and those that are stored. Nodes are called by their source comment.
std::string groups_of(const std::string& text, bool fuse = true, bool lays_out_operands = false, bool copies_operands = false) {
  const auto graph = parse_graph(text, find_op);
  const Grouping grouping = group_nodes(*graph, {fuse, lays_out_operands, copies_operands});
  std::string out;
  const auto join = [](std::string& list, const std::string& name, const char* by) { list += (list.empty() ? "" : by) + name; };
  for (const Group& group : grouping.groups) {
    std::string nodes, stored;
    for (const Node* node : group.nodes) join(nodes, node->source, "+");
    for (const Value* value : group.outputs) join(stored, value->producer->source, ",");
    out += nodes + " -> " + stored + "\n";
  }
  for (const Node* node : graph->nodes()) {
    if (!grouping.placed_concats.count(node)) continue;
    std::string pieces;
    for (const Value* input : node->inputs) {
      const auto placed = grouping.placed_in.find(input);
      join(pieces,
           (input->producer ? input->producer->source : input->name) +
               (placed != grouping.placed_in.end() && placed->second == node ? "" : " copied"),
           ", ");
    }
    out += node->source + " placed: " + pieces + "\n";
  }
  return out;
}

const std::string kConv = "{dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}";
const std::string kOneTap = "{dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}";
const std::string kProduct = "{trans_a=0, trans_b=0}";

std::string image_graph(const std::string& body) {
  return "graph g(%x: f32[1, 8, 16, 16], %w: f32[8, 8, 3, 3], %v: f32[8, 8, 1, 1]) {\n" + body + "}\n";
}
std::string row_graph(const std::string& body) {
  return "graph g(%x: f32[64, 64], %y: f32[64, 64], %w: f32[64, 64]) {\n" + body + "}\n";
}

}  // namespace

TEST_CASE("elementwise_chain_is_one_kernel") {
  CHECK(groups_of(row_graph("  %0 = exp(%x)  // exp\n  %1 = add(%0, %y)  // add\n  %2 = relu(%1)  // relu\n  return o=%2\n")) ==
        "relu -> relu\n");
}

TEST_CASE("epilogue_joins_the_convolution") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv +
                              "  // conv\n  %1 = tanh(%0)  // tanh\n  %2 = add(%1, %x)  // add\n  return o=%2\n")) ==
        "conv+tanh+add -> add\n");
}

TEST_CASE("residual_add_joins_the_later_convolution") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv + "  // first\n  %1 = conv(%0, %w) " + kConv +
                              "  // second\n  %2 = add(%0, %1)  // add\n  return o=%2\n")) ==
        "first -> first\nsecond+add -> add\n");
}

TEST_CASE("what_gathers_is_stored_where_it_is_broadcast") {
  const auto masked = [](const char* of, int rows) {
    return groups_of(
        fmt::format("graph g(%x: f32[1024, 32], %w: f32[32, 64], %t: f32[{0}, 64], %i: i64[{0}, 64]) {{\n"
                    "  %0 = gather_elements(%t, %i) {{axis=1}}  // gather\n  %1 = exp({1})  // exp\n"
                    "  %2 = matmul(%x, %w) {2}  // matmul\n  %3 = add(%2, %1)  // add\n  return o=%3\n}}\n",
                    rows, of, kProduct));
  };
  // Each of 1024 rows would gather again, one by one.
  CHECK(masked("%0", 1) == "exp -> exp\nmatmul+add -> add\n");
  CHECK(masked("%0", 1024) == "matmul+add -> add\n");
  CHECK(masked("%t", 1) == "matmul+add -> add\n");
}

TEST_CASE("two_convolutions_stay_apart_and_one_takes_the_sum") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv + "  // left\n  %1 = conv(%x, %v) " + kOneTap +
                              "  // right\n  %2 = add(%0, %1)  // add\n  return o=%2\n")) ==
        "right -> right\nleft+add -> add\n");
}

TEST_CASE("shared_producer_is_stored_once") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv + "  // conv\n  %1 = relu(%0)  // relu\n  %2 = conv(%1, %w) " +
                              kConv + "  // a\n  %3 = conv(%1, %v) " + kOneTap + "  // b\n  return o=%2, p=%3\n")) ==
        "conv+relu -> relu\na -> a\nb -> b\n");
}

TEST_CASE("value_before_its_epilogue_is_stored_too_when_it_is_read_elsewhere") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv + "  // conv\n  %1 = relu(%0)  // relu\n  return o=%0, p=%1\n")) ==
        "conv+relu -> conv,relu\n");
}

TEST_CASE("elementwise_before_windowed_conv_is_stored") {
  CHECK(groups_of(image_graph("  %0 = tanh(%x)  // tanh\n  %1 = conv(%0, %w) " + kConv + "  // conv\n  return o=%1\n")) ==
        "tanh -> tanh\nconv -> conv\n");
}

TEST_CASE("elementwise_before_conv_of_one_tap_is_computed_in_its_loads") {
  CHECK(groups_of(image_graph("  %0 = tanh(%x)  // tanh\n  %1 = conv(%0, %v) " + kOneTap + "  // conv\n  return o=%1\n")) ==
        "conv -> conv\n");
}

TEST_CASE("elementwise_before_the_right_operand_is_stored") {
  CHECK(groups_of(row_graph("  %0 = tanh(%w)  // tanh\n  %1 = matmul(%x, %0) " + kProduct + "  // product\n  return o=%1\n")) ==
        "tanh -> tanh\nproduct -> product\n");
}

TEST_CASE("reshape_between_matmul_and_add_is_free") {
  CHECK(groups_of(
            "graph g(%x: f32[6, 8], %w: f32[8, 4], %b: f32[3, 4]) {\n  %0 = matmul(%x, %w) " + kProduct +
            "  // product\n  %1 = reshape(%0) {shape=(2, 3, 4)}  // split\n  %2 = add(%1, %b)  // add\n  return o=%2\n}\n") ==
        "product+split+add -> add\n");
}

TEST_CASE("a_smaller_result_does_not_take_a_broadcasting_epilogue") {
  CHECK(groups_of(row_graph(
            "  %0 = reduce_max(%x) {axes=[0], keepdims=1}  // largest\n  %1 = sub(%x, %0)  // sub\n  return o=%1\n")) ==
        "largest -> largest\nsub -> sub\n");
}

TEST_CASE("reductions_of_rows_take_the_work_on_their_rows") {
  CHECK(groups_of(row_graph("  %0 = reduce_max(%x) {axes=[1], keepdims=1}  // largest\n  %1 = sub(%x, %0)  // sub\n"
                            "  return o=%1\n")) == "largest+sub -> sub\n");
}

TEST_CASE("work_on_rows_is_left_to_its_only_reader") {
  CHECK(groups_of(row_graph("  %0 = reduce_max(%x) {axes=[1], keepdims=1}  // largest\n  %1 = sub(%x, %0)  // sub\n"
                            "  %2 = matmul(%1, %w) " +
                            kProduct + "  // matmul\n  return o=%2\n")) == "largest -> largest\nmatmul -> matmul\n");
}

TEST_CASE("group_cycle_is_refused") {
  // The sum needs the second product, which needs the first: it can not be the first one's epilogue.
  CHECK(groups_of(
            row_graph("  %0 = matmul(%x, %w) " + kProduct + "  // first\n  %1 = matmul(%0, %w) " + kProduct +
                      "  // second\n  %2 = softmax(%1) {axis=1}  // softmax\n  %3 = mul(%0, %2)  // mul\n  return o=%3\n")) ==
        "first -> first\nsecond -> second\nsoftmax+mul -> mul\n");
}

TEST_CASE("concat_of_kernel_results_costs_nothing") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv + "  // a\n  %1 = conv(%x, %v) " + kOneTap +
                              "  // b\n  %2 = concat(%0, %1) {axis=1}  // join\n  return o=%2\n")) ==
        "a -> a\nb -> b\njoin placed: a, b\n");
}

TEST_CASE("dense_concats_share_one_buffer") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv +
                              "  // a\n  %1 = concat(%x, %0) {axis=1}  // first\n  %2 = conv(%x, %v) " + kOneTap +
                              "  // b\n  %3 = concat(%1, %2) {axis=1}  // second\n  return o=%3\n")) ==
        "a -> a\nb -> b\nfirst placed: x copied, a\nsecond placed: first, b\n");
}

TEST_CASE("concat_of_one_value_twice_is_copied") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv +
                              "  // a\n  %1 = concat(%0, %0) {axis=1}  // join\n  return o=%1\n")) == "a -> a\njoin -> join\n");
}

TEST_CASE("concat_of_inputs_read_by_arithmetic_is_computed_in_its_loads") {
  CHECK(groups_of(row_graph("  %0 = concat(%x, %y) {axis=1}  // join\n  %1 = relu(%0)  // relu\n  return o=%1\n")) ==
        "relu -> relu\n");
}

TEST_CASE("unfused_has_one_kernel_an_operator") {
  CHECK(groups_of(row_graph("  %0 = matmul(%x, %w) " + kProduct +
                            "  // product\n  %1 = add(%0, %y)  // add\n  %2 = reshape(%1) {shape=(4096)}  // flat\n  %3 = "
                            "relu(%2)  // relu\n  return o=%3\n"),
                  false) == "product -> product\nadd -> add\nrelu -> relu\n");
}

TEST_CASE("movement_at_the_end_is_left_to_the_readers") {
  CHECK(groups_of(row_graph("  %0 = matmul(%x, %w) " + kProduct +
                            "  // product\n  %1 = transpose(%0) {perm=[1, 0]}  // flip\n  %2 = matmul(%0, %1) " + kProduct +
                            "  // square\n  return o=%2\n")) == "product -> product\nsquare -> square\n");
}

TEST_CASE("movement_that_is_the_result_stays_in_the_kernel") {
  CHECK(groups_of(row_graph("  %0 = matmul(%x, %w) " + kProduct +
                            "  // product\n  %1 = transpose(%0) {perm=[1, 0]}  // flip\n  return o=%1\n")) ==
        "product+flip -> flip\n");
}

TEST_CASE("graph_input_as_output_needs_no_group") { CHECK(groups_of(row_graph("  return o=%x\n")) == ""); }

TEST_CASE("constant_as_output_needs_no_group") {
  CHECK(groups_of("graph g(%x: f32[2]) {\n  %c = constant f32[2] [1, 2]  // c\n  return o=%c\n}\n") == "");
}

TEST_CASE("same_value_as_two_outputs_is_one_kernel") {
  CHECK(groups_of(row_graph("  %0 = relu(%x)  // relu\n  return o=%0, p=%0\n")) == "relu -> relu\n");
}

TEST_CASE("results_over_one_space_are_one_kernel") {
  CHECK(groups_of(row_graph(
            "  %0 = relu(%x)  // relu\n  %1 = add(%0, %y)  // add\n  %2 = mul(%0, %w)  // mul\n  return o=%1, p=%2\n")) ==
        "add+mul -> add,mul\n");
}

TEST_CASE("sums over the same axes of one value and of its products are one kernel") {
  CHECK(groups_of("graph g(%x: f32[6, 5], %y: f32[6, 5]) {\n  %0 = reduce_sum(%x) {axes=[0], keepdims=1}  // sum\n"
                  "  %1 = mul(%x, %y)  // mul\n  %2 = reduce_sum(%1) {axes=[0], keepdims=1}  // product\n"
                  "  %3 = neg(%2)  // neg\n  return o=%0, p=%3\n}\n") == "sum+product+neg -> sum,neg\n");
}

TEST_CASE("sums of which one needs the other are one kernel") {
  CHECK(groups_of("graph g(%x: f32[6, 5]) {\n  %0 = reduce_sum(%x) {axes=[0], keepdims=1}  // sum\n"
                  "  %1 = sub(%x, %0)  // sub\n  %2 = reduce_sum(%1) {axes=[0], keepdims=1}  // rest\n"
                  "  return o=%0, p=%2\n}\n") == "sum+rest -> sum,rest\n");
}

TEST_CASE("sums with a kernel between them stay apart") {
  CHECK(groups_of("graph g(%x: f32[6, 5], %w: f32[5, 5]) {\n  %0 = reduce_sum(%x) {axes=[0], keepdims=1}  // sum\n"
                  "  %1 = sub(%x, %0)  // sub\n  %2 = matmul(%1, %w) {trans_a=0, trans_b=0}  // matmul\n"
                  "  %3 = mul(%x, %2)  // mul\n  %4 = reduce_sum(%3) {axes=[0], keepdims=1}  // rest\n"
                  "  return o=%0, p=%4\n}\n") == "sum -> sum\nmatmul+mul -> mul\nrest -> rest\n");
}

TEST_CASE("sums with a stored value between them stay apart") {
  CHECK(groups_of("graph g(%x: f32[6, 5]) {\n  %0 = reduce_sum(%x) {axes=[0], keepdims=1}  // sum\n"
                  "  %1 = sub(%x, %0)  // sub\n  %2 = reduce_sum(%1) {axes=[0], keepdims=1}  // rest\n"
                  "  return o=%1, p=%2\n}\n") == "sum -> sum\nsub -> sub\nrest -> rest\n");
}

TEST_CASE("what costs much to compute twice is stored between reductions") {
  CHECK(groups_of("graph g(%x: f32[6, 5]) {\n  %0 = reduce_max(%x) {axes=[0], keepdims=1}  // max\n"
                  "  %1 = sub(%x, %0)  // sub\n  %2 = exp(%1)  // exp\n"
                  "  %3 = reduce_sum(%2) {axes=[0], keepdims=1}  // sum\n  return o=%0, p=%3\n}\n") ==
        "max -> max\nsum -> sum\n");
}

TEST_CASE("a product that sums alone read is left to them") {
  CHECK(groups_of(image_graph("  %0 = conv(%x, %w) " + kConv +
                              "  // conv\n  %1 = relu(%0)  // relu\n"
                              "  %2 = mul(%1, %x)  // mul\n  %3 = reduce_sum(%1) {axes=[0, 2, 3], keepdims=1}  // sum\n"
                              "  %4 = reduce_sum(%2) {axes=[0, 2, 3], keepdims=1}  // product\n  return o=%3, p=%4\n")) ==
        "conv+relu -> relu\nsum+product -> sum,product\n");
}

TEST_CASE("sums over other axes stay apart") {
  CHECK(groups_of("graph g(%x: f32[6, 5]) {\n  %0 = reduce_sum(%x) {axes=[0], keepdims=1}  // rows\n"
                  "  %1 = reduce_sum(%x) {axes=[1], keepdims=1}  // columns\n  return o=%0, p=%1\n}\n") ==
        "rows -> rows\ncolumns -> columns\n");
}

TEST_CASE("sums of products with one tensor are one kernel") {
  CHECK(groups_of("graph g(%x: f32[6, 5], %y: f32[6, 5], %z: f32[6, 5]) {\n  %0 = mul(%x, %y)  // a\n"
                  "  %1 = reduce_sum(%0) {axes=[0], keepdims=1}  // first\n  %2 = mul(%x, %z)  // b\n"
                  "  %3 = reduce_sum(%2) {axes=[0], keepdims=1}  // second\n  return o=%1, p=%3\n}\n") ==
        "first+second -> first,second\n");
}

TEST_CASE("what two products would lay out, each for itself, is stored once") {
  const std::string sums = "  %0 = mul(%x, %y)  // mul\n  %1 = matmul(%0, %w) " + kProduct + "  // one\n";
  const std::string two = row_graph(sums + "  %2 = matmul(%0, %y) " + kProduct + "  // two\n  return o=%1, p=%2\n");
  CHECK(groups_of(two, true, true) == "mul -> mul\none -> one\ntwo -> two\n");
  CHECK(groups_of(row_graph(sums + "  return o=%1\n"), true, true) == "one -> one\n");
}

TEST_CASE("what two products would compute of several tensors while they copy it is stored once, if it is large") {
  const auto graph = [](const std::string& rows, const std::string& value, const std::string& second) {
    return "graph g(%x: f32[" + rows + ", 64], %y: f32[" + rows +
           ", 64], %w: f32[64, 64], %v: f32[64, 64]) {\n  %0 = " + value + "  // value\n  %1 = matmul(%0, %w) " + kProduct +
           "  // one\n" + second + "}\n";
  };
  const std::string two = "  %2 = matmul(%0, %v) " + kProduct + "  // two\n  return o=%1, p=%2\n", alone = "  return o=%1\n";
  const std::string apart = "one -> one\ntwo -> two\n";
  const auto copied = [](const std::string& text) { return groups_of(text, true, false, true); };
  CHECK(copied(graph("4096", "sub(%x, %y)", two)) == "value -> value\n" + apart);
  CHECK(groups_of(graph("4096", "sub(%x, %y)", two)) == apart);
  CHECK(copied(graph("4096", "sub(%x, %y)", alone)) == "one -> one\n");
  CHECK(copied(graph("4096", "relu(%x)", two)) == apart);
  CHECK(copied(graph("8", "sub(%x, %y)", two)) == apart);
}

TEST_CASE("a right operand that is packed anyway is computed by the kernel that packs it") {
  const std::string text =
      row_graph("  %0 = relu(%w)  // relu\n  %1 = matmul(%x, %0) " + kProduct + "  // product\n  return o=%1\n");
  CHECK(groups_of(text, true, true) == "product -> product\n");
  CHECK(groups_of(text) == "relu -> relu\nproduct -> product\n");
}

TEST_CASE("a depthwise convolution computes what few flops make of one tensor, where caches answer its taps") {
  const std::string conv = "{dilations=[1, 1], group=8, pads=[1, 1, 1, 1], strides=[1, 1]}";
  const auto graph = [&](const std::string& body) {
    return "graph g(%x: f32[1, 8, 16, 16], %y: f32[1, 8, 16, 16], %w: f32[8, 1, 3, 3]) {\n" + body + "}\n";
  };
  const std::string one = graph("  %0 = relu(%x)  // relu\n  %1 = conv(%0, %w) " + conv + "  // conv\n  return o=%1\n");
  CHECK(groups_of(one, true, true) == "conv -> conv\n");
  CHECK(groups_of(one) == "relu -> relu\nconv -> conv\n");
  const std::string two = graph("  %0 = mul(%x, %y)  // mul\n  %1 = conv(%0, %w) " + conv + "  // conv\n  return o=%1\n");
  CHECK(groups_of(two, true, true) == "mul -> mul\nconv -> conv\n");
}

TEST_CASE("results_that_are_moved_before_they_are_read_are_computed_there") {
  const auto graph = [](int shares) {
    std::string body = "  %0 = exp(%x)  // exp\n  %1 = matmul(%0, %w) " + kProduct + "  // matmul\n";
    int last = 0;
    for (int i = 0; i < shares; ++i) {
      const int at = 10 * (i + 1);
      body += fmt::format(
          "  %{0} = mul(%1, %y)  // share\n  %{1} = slice(%{0}) {{starts=({2}, 0), sizes=(32, 64), steps=[2, 1]}}  // slice\n",
          at, at + 1, i % 2);
      if (i > 0) body += fmt::format("  %{0} = add(%{1}, %{2})  // add\n", at + 2, last, at + 1);
      last = i > 0 ? at + 2 : at + 1;
    }
    return row_graph(body + fmt::format("  return o=%{}\n", last));
  };
  CHECK(groups_of(graph(2)).find("matmul+share+share") != std::string::npos);
  CHECK(groups_of(graph(3)).find("matmul -> matmul") != std::string::npos);
}
