"""Six networks in small: each the layers and operators of its big one.

    python tests/torch_device/networks.py [--steps 50] [--only PATTERN]

trains each by an ordinary loop on the CPU and on the device, and prints the largest difference of their losses, how far each lies from the
same loop in double precision on the CPU, and what fell to the CPU.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable

import torch
from layers import Gpt, Inverted, UNet, VisionTransformer, normed, resnet
from torch import nn
from torch.nn import functional as F


def mobilenet() -> nn.Module:
    return nn.Sequential(
        normed(nn.Conv2d(3, 8, 3, 2, 1, bias=False), 8, nn.ReLU6(inplace=True)),
        Inverted(8, 8, 1, 2), Inverted(8, 12, 2, 6), Inverted(12, 12, 1, 6), Inverted(12, 16, 2, 6),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.0), nn.Linear(16, 10),
    )  # fmt: skip


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "resnet18": lambda: resnet((2, 2, 2, 2), False, width=8, classes=10),
    "resnet50": lambda: resnet((3, 4, 6, 3), True, width=8, classes=10),
    "mobilenet_v2": mobilenet,
    "vit": lambda: VisionTransformer(width=32, layers=2, heads=4, size=32, patch=8, classes=10),
    "gpt2": lambda: Gpt(width=32, layers=2, heads=4, words=50, positions=16),
    "unet": lambda: UNet(width=8),
}


def batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    if name == "gpt2":
        tokens = torch.randint(50, (4, 17))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    if name == "unet":
        return torch.randn(2, 3, 32, 32), torch.randint(4, (2, 32, 32))
    return torch.randn(8, 3, 32, 32), torch.randint(10, (8,))


def losses(name: str, device: str, steps: int, dtype: torch.dtype = torch.float32) -> list[float]:
    """Of an ordinary loop."""
    torch.manual_seed(1)
    model = NETWORKS[name]().to(device, dtype).train()
    x, y = (t.to(device) for t in batch(name))
    x = x.to(dtype) if x.is_floating_point() else x
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3) if name in ("vit", "gpt2") else torch.optim.SGD(model.parameters(), 0.01, 0.9)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        result = model(x)
        loss = F.cross_entropy(result.flatten(0, 1), y.flatten()) if name == "gpt2" else F.cross_entropy(result, y)
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return [float(v) for v in found]


def apart(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    import oclc_torch  # noqa: F401

    for name in NETWORKS:
        if not re.search(given.only, name):
            continue
        start = time.monotonic()
        found, expected = losses(name, "ocl", given.steps), losses(name, "cpu", given.steps)
        double = losses(name, "cpu", given.steps, torch.float64)
        fell = torch.ocl.fallbacks()
        print(
            f"{name}: losses {expected[0]:.4f} to {found[-1]:.4f}, {apart(found, expected):.1e} apart (from double: device "
            f"{apart(found, double):.1e}, CPU {apart(expected, double):.1e}), {time.monotonic() - start:.0f} s, on the CPU: {fell or 'none'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
