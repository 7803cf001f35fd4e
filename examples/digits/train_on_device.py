#!/usr/bin/env python3
"""Trains the digits network by an ordinary loop of PyTorch on the device `ocl` (or another) and prints the accuracy.

    pip install . && pip install --no-build-isolation ./frontends/torch_device      # in an environment with torch
    python3 examples/digits/train_on_device.py [--device ocl] [--epochs 10]
"""
import argparse
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 64


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))


def images_and_labels(name):
    images = np.load(HERE / f'{name}_images.npy')
    images = torch.from_numpy(images / np.float32(16) if images.dtype == np.uint8 else images)  # in [0, 1]
    return images.reshape(-1, 1, 8, 8), torch.from_numpy(np.load(HERE / f'{name}_labels.npy')).long()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    arguments.add_argument('--device', default='ocl')
    arguments.add_argument('--epochs', type=int, default=10)
    options = arguments.parse_args()
    torch.manual_seed(0)
    model = network().to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    x, y = (t.to(options.device) for t in images_and_labels('train'))
    for epoch in range(options.epochs):
        begin, total = time.perf_counter(), torch.zeros((), device=options.device)
        for at in torch.randperm(len(x) // BATCH * BATCH).reshape(-1, BATCH):
            at = at.to(options.device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[at]), y[at])
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f'epoch {epoch + 1}: loss {float(total) / (len(x) // BATCH):.4f}, {time.perf_counter() - begin:.2f} s')
    model.eval()
    images, labels = images_and_labels('test')
    with torch.no_grad():
        right = (model(images.to(options.device)).argmax(1).cpu() == labels).sum()
    print(f'{int(right)} of {len(labels)} test images are right')
    if options.device.startswith('ocl'):
        print('on the CPU ran:', torch.ocl.fallbacks() or 'nothing')


if __name__ == '__main__':
    main()
