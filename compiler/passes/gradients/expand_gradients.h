// Expansions of operators that gradients are made of, a function a row of the pass expand_gradients.
#pragma once
#include "compiler/ops/builder.h"

namespace oclc {

Value* expand_conv_transpose(Builder& b, const Node& node);
// As expand_conv_transpose(), by a convolution for each class of positions; null where that saves few multiplications.
Value* split_stride_phases(Builder& b, const Node& node);
Value* expand_conv_weight_grad(Builder& b, const Node& node);
// As expand_conv_weight_grad(), as one product of moved rows; null if the convolution is none that gains by it.
Value* shifted_weight_grad(Builder& b, const Node& node);
// The same as a convolution of the images with the features, whose terms are images and positions; null if the convolution is
// none that gains by it.
Value* correlated_weight_grad(Builder& b, const Node& node);
// The same of patches of few channels, whose windows are widened until their rows are whole vectors; null if patches are
// already, or are small, or would grow by half.
Value* widened_weight_grad(Builder& b, const Node& node);
// The same of depthwise convolutions with stride 1, as sums over the image, of which each element is then computed once and not
// once a tap; null if the convolution is another.
Value* mirrored_weight_grad(Builder& b, const Node& node);
// The same as one product, which the schedule cuts into as many sums as the target wants; null for depthwise convolutions, many
// results and sizes that are not known.
Value* whole_weight_grad(Builder& b, const Node& node);
Value* expand_max_pool_index(Builder& b, const Node& node);
Value* expand_max_pool_grad(Builder& b, const Node& node);
// CompileError for padded windows over images of symbolic size.
Value* expand_avg_pool_grad(Builder& b, const Node& node);

}  // namespace oclc
