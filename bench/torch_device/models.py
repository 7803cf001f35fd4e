"""Seven networks in full size, as their papers and torchvision or transformers have them, without dropout that would draw numbers."""

from __future__ import annotations

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/torch_device"))
from layers import Gpt, Inverted, UNet, VisionTransformer, normed, resnet  # noqa: E402

CLASSES, TOKENS, WORDS = 1000, 128, 50257


def alexnet() -> nn.Module:
    relu = lambda: nn.ReLU(inplace=True)  # noqa: E731
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), relu(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 192, 5, padding=2), relu(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), relu(), nn.Conv2d(384, 256, 3, padding=1), relu(), nn.Conv2d(256, 256, 3, padding=1),
        relu(), nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Linear(256 * 36, 4096), relu(),
        nn.Linear(4096, 4096), relu(), nn.Linear(4096, CLASSES),
    )  # fmt: skip


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


NETWORKS = {
    "alexnet": alexnet,
    "resnet18": lambda: resnet((2, 2, 2, 2), False, width=64, classes=CLASSES),
    "resnet50": lambda: resnet((3, 4, 6, 3), True, width=64, classes=CLASSES),
    "mobilenet_v2": mobilenet_v2,
    "vit_b_16": lambda: VisionTransformer(width=768, layers=12, heads=12, size=224, patch=16, classes=CLASSES),
    "gpt2": lambda: Gpt(width=768, layers=12, heads=12, words=WORDS, positions=1024),
    "unet": lambda: UNet(width=32),
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
