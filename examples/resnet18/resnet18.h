// ResNet-18 (He et al., Deep Residual Learning for Image Recognition, CVPR 2016) with the parameter names of torchvision.
#pragma once
#include <string>

#include "frontends/cpp/nn.h"

namespace resnet18 {

namespace nn = oclc::nn;

// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x))
inline nn::Tensor basic_block(nn::Network& net, const std::string& name, const nn::Tensor& x, std::int64_t channels,
                              std::int64_t stride) {
  const nn::Network::Scope scope(net, name);
  nn::Tensor y =
      conv(net, "conv1", x, channels, {.kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}, .bias = false});
  y = relu(batch_norm(net, "bn1", y));
  y = conv(net, "conv2", y, channels, {.kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  y = batch_norm(net, "bn2", y);
  nn::Tensor shortcut = x;
  if (stride != 1 || x.size(1) != channels) {
    shortcut = conv(net, "downsample.0", x, channels, {.kernel = {1, 1}, .stride = {stride, stride}, .bias = false});
    shortcut = batch_norm(net, "downsample.1", shortcut);
  }
  return relu(y + shortcut);
}

// image[N, 3, H, W] to features[N, 512]
inline nn::Tensor features(nn::Network& net, const nn::Tensor& image) {
  nn::Tensor x = conv(net, "conv1", image, 64, {.kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}, .bias = false});
  x = relu(batch_norm(net, "bn1", x));
  x = max_pool(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  for (int layer = 0; layer < 4; ++layer) {
    const nn::Network::Scope scope(net, "layer" + std::to_string(layer + 1));
    const std::int64_t channels = std::int64_t{64} << layer;
    x = basic_block(net, "0", x, channels, layer == 0 ? 1 : 2);
    x = basic_block(net, "1", x, channels, 1);
  }
  return global_avg_pool(x);
}

// image[N, 3, H, W] to logits[N, classes]
inline nn::Tensor resnet18(nn::Network& net, const nn::Tensor& image, std::int64_t classes = 1000) {
  return linear(net, "fc", features(net, image), classes);
}

}  // namespace resnet18
