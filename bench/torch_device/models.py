"""Seven networks in full size, as their papers and torchvision or transformers have them, without dropout that would draw numbers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

CLASSES, TOKENS, WORDS = 1000, 128, 50257


def normed(layer: nn.Module, channels: int, *after: nn.Module) -> nn.Sequential:
    return nn.Sequential(layer, nn.BatchNorm2d(channels), *after)


def alexnet() -> nn.Module:
    relu = lambda: nn.ReLU(inplace=True)  # noqa: E731
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), relu(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 192, 5, padding=2), relu(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), relu(), nn.Conv2d(384, 256, 3, padding=1), relu(), nn.Conv2d(256, 256, 3, padding=1),
        relu(), nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Linear(256 * 36, 4096), relu(),
        nn.Linear(4096, 4096), relu(), nn.Linear(4096, CLASSES),
    )  # fmt: skip


class Residual(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        outputs = 4 * width if bottleneck else width
        relu = nn.ReLU(inplace=True)
        if bottleneck:
            self.body = nn.Sequential(
                normed(nn.Conv2d(inputs, width, 1, bias=False), width, relu),
                normed(nn.Conv2d(width, width, 3, stride, 1, bias=False), width, relu),
                normed(nn.Conv2d(width, outputs, 1, bias=False), outputs),
            )
        else:
            self.body = nn.Sequential(
                normed(nn.Conv2d(inputs, width, 3, stride, 1, bias=False), width, relu),
                normed(nn.Conv2d(width, width, 3, 1, 1, bias=False), width),
            )
        same = inputs == outputs and stride == 1
        self.short = nn.Identity() if same else normed(nn.Conv2d(inputs, outputs, 1, stride, bias=False), outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.short(x), inplace=True)


def resnet(blocks: tuple[int, ...], bottleneck: bool) -> nn.Module:
    layers: list[nn.Module] = [normed(nn.Conv2d(3, 64, 7, 2, 3, bias=False), 64, nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for i, count in enumerate(blocks):
        for k in range(count):
            layers.append(Residual(channels, 64 << i, 2 if i > 0 and k == 0 else 1, bottleneck))
            channels = (256 if bottleneck else 64) << i
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


class Inverted(nn.Module):
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


def mobilenet_v2() -> nn.Module:
    layers: list[nn.Module] = [normed(nn.Conv2d(3, 32, 3, 2, 1, bias=False), 32, nn.ReLU6(inplace=True))]
    channels = 32
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, outputs, count, stride in rows:
        for k in range(count):
            layers.append(Inverted(channels, outputs, stride if k == 0 else 1, factor))
            channels = outputs
    layers.append(normed(nn.Conv2d(channels, 1280, 1, bias=False), 1280, nn.ReLU6(inplace=True)))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, CLASSES))


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
    def __init__(self, width: int = 768, layers: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, 12, False) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Gpt(nn.Module):
    def __init__(self, width: int = 768, layers: int = 12) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(1024, width)
        self.blocks = nn.Sequential(*[Block(width, 12, True) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.words(tokens) + self.places(places))))


class UNet(nn.Module):
    def __init__(self, width: int = 32) -> None:
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


NETWORKS = {
    "alexnet": alexnet,
    "resnet18": lambda: resnet((2, 2, 2, 2), False),
    "resnet50": lambda: resnet((3, 4, 6, 3), True),
    "mobilenet_v2": mobilenet_v2,
    "vit_b_16": VisionTransformer,
    "gpt2": Gpt,
    "unet": UNet,
}


def network(name: str) -> nn.Module:
    torch.manual_seed(1)
    return NETWORKS[name]()


def batch(name: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    if name == "gpt2":
        tokens = torch.randint(WORDS, (count, TOKENS + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    if name == "unet":
        return torch.randn(count, 3, 128, 128), torch.randint(4, (count, 128, 128))
    return torch.randn(count, 3, 224, 224), torch.randint(CLASSES, (count,))


def loss(name: str, result: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(result.flatten(0, 1), y.flatten()) if name == "gpt2" else F.cross_entropy(result, y)
