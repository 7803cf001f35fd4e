"""Networks of any size, from their layers: small ones for tests, full ones for bench/torch_device."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


def normed(layer: nn.Module, channels: int, *after: nn.Module) -> nn.Sequential:
    return nn.Sequential(layer, nn.BatchNorm2d(channels), *after)


class Residual(nn.Module):
    """ResNet's block: two 3x3 convolutions, or with a bottleneck 1x1, 3x3 and 1x1."""

    def __init__(self, inputs: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        outputs = 4 * width if bottleneck else width
        first = nn.Conv2d(inputs, width, 1, bias=False) if bottleneck else nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.body = nn.Sequential(normed(first, width, nn.ReLU(inplace=True)))
        self.body.append(normed(nn.Conv2d(width, width, 3, stride if bottleneck else 1, 1, bias=False), width))
        if bottleneck:
            self.body.append(nn.ReLU(inplace=True))
            self.body.append(normed(nn.Conv2d(width, outputs, 1, bias=False), outputs))
        same = inputs == outputs and stride == 1
        nn.init.zeros_(self.body[-1][-1].weight)  # type: ignore[index]  as ResNets are trained; else rounding errors grow from block to block
        self.short = nn.Identity() if same else normed(nn.Conv2d(inputs, outputs, 1, stride, bias=False), outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.short(x), inplace=True)


def resnet(blocks: tuple[int, ...], bottleneck: bool, width: int, classes: int) -> nn.Module:
    """`width`: channels of the stem."""
    layers: list[nn.Module] = [normed(nn.Conv2d(3, width, 7, 2, 3, bias=False), width, nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1)]
    channels = width
    for i, count in enumerate(blocks):
        for k in range(count):
            layers.append(Residual(channels, width << i, 2 if i > 0 and k == 0 else 1, bottleneck))
            channels = (4 * width if bottleneck else width) << i
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Inverted(nn.Module):
    """MobileNetV2's block: wide, by channel, narrow."""

    def __init__(self, inputs: int, outputs: int, stride: int, factor: int) -> None:
        super().__init__()
        wide = inputs * factor
        first = [normed(nn.Conv2d(inputs, wide, 1, bias=False), wide, nn.ReLU6(inplace=True))] if factor > 1 else []
        self.body = nn.Sequential(
            *first,
            normed(nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), wide, nn.ReLU6(inplace=True)),
            normed(nn.Conv2d(wide, outputs, 1, bias=False), outputs),
        )
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


class Block(nn.Module):
    """A layer of a transformer with the norms in front."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh" if self.causal else "none"))


class VisionTransformer(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, size: int, patch: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads, False) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Gpt(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, words: int, positions: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*[Block(width, heads, True) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.words(tokens) + self.places(places))))


class UNet(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()

        def twice(inputs: int, outputs: int) -> nn.Sequential:
            parts = [normed(nn.Conv2d(i, outputs, 3, padding=1), outputs, nn.ReLU(inplace=True)) for i in (inputs, outputs)]
            return nn.Sequential(*parts)

        self.down1, self.down2, self.middle = twice(3, width), twice(width, 2 * width), twice(2 * width, 4 * width)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.right2, self.right1 = twice(4 * width, 2 * width), twice(2 * width, width)
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.right2(torch.cat([self.up2(c), b], 1))
        return self.head(self.right1(torch.cat([self.up1(b), a], 1)))
