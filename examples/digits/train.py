#!/usr/bin/env python3
"""Train the digits network and write model.onnx, both sets of images and the reference logits beside this file.

The data are the UCI optical digits that scikit-learn carries: 1797 images of 8x8 pixels, values 0..16, here scaled to
[0, 1]. One image in five is held out, evenly over the classes, and never seen in training. Seeded: the split and the data
order are the same on every machine; the last bits of the weights depend on the PyTorch build.

    python3 -m venv /tmp/digits && /tmp/digits/bin/pip install torch==2.13.0 scikit-learn==1.9.1 onnx==1.23.2 onnxruntime==1.31.1
    /tmp/digits/bin/python examples/digits/train.py
"""
import collections
import pathlib
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
SEED, EPOCHS, BATCH = 2024, 60, 32


def network():
    def block(number, inputs, outputs):
        return {f'conv{number}': nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                f'norm{number}': nn.BatchNorm2d(outputs), f'relu{number}': nn.ReLU()}

    return nn.Sequential(collections.OrderedDict(
        **block(1, 1, 16), **block(2, 16, 32), pool2=nn.MaxPool2d(2), **block(3, 32, 64), pool3=nn.MaxPool2d(2),
        flatten=nn.Flatten(), linear4=nn.Linear(64 * 2 * 2, 64), relu4=nn.ReLU(), dropout4=nn.Dropout(0.3),
        linear5=nn.Linear(64, 10)))


def shifted(images):
    """Each image moved by up to one pixel in each direction, zeros coming in."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    moves = torch.randint(0, 3, (len(images), 2))
    return torch.stack([p[:, y:y + 8, x:x + 8] for p, (y, x) in zip(padded, moves.tolist())])


def train(model, images, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    batches = (len(images) + BATCH - 1) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=EPOCHS * batches)
    model.train()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(model(shifted(images[rows])), labels[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()


def export(model, path):
    """Opset 17, symbolic batch N; PRESERVE keeps the BatchNormalization nodes, which EVAL would fold away."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        torch.onnx.export(model, torch.zeros(2, 1, 8, 8), str(path), dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, input_names=['image'],
                          output_names=['logits'], dynamic_axes={'image': {0: 'N'}, 'logits': {0: 'N'}})
    proto = onnx.load(path)
    for node in proto.graph.node:
        node.name = node.name.strip('/').split('/')[0]
    proto.doc_string = 'Handwritten digits, 8x8 pixels in [0, 1]; ten logits.'
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, path)


def write_test_data_set(folder, images, logits):
    """The layout of the ONNX backend tests."""
    folder.mkdir(exist_ok=True)
    for name, kind, value in (('image', 'input', images), ('logits', 'output', logits)):
        tensor = onnx.numpy_helper.from_array(value, name)
        (folder / f'{kind}_0.pb').write_bytes(tensor.SerializeToString())


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    digits = load_digits()
    pixels = (digits.images / 16).astype(np.float32)[:, None]
    train_x, test_x, train_y, test_y = train_test_split(pixels, digits.target.astype(np.int64), test_size=0.2,
                                                        random_state=SEED, stratify=digits.target)
    model = network()
    train(model, torch.from_numpy(train_x), torch.from_numpy(train_y))
    with torch.no_grad():
        exact = model.double()(torch.from_numpy(test_x).double()).numpy()
    export(model.float(), HERE / 'model.onnx')
    logits = exact.astype(np.float32)
    np.save(HERE / 'train_images.npy', np.rint(train_x * 16).astype(np.uint8))
    np.save(HERE / 'train_labels.npy', train_y.astype(np.uint8))
    np.save(HERE / 'test_images.npy', test_x)
    np.save(HERE / 'test_labels.npy', test_y)
    np.save(HERE / 'digits_logits.npy', logits)
    write_test_data_set(HERE / 'test_data_set_0', test_x, logits)

    found = onnxruntime.InferenceSession(HERE / 'model.onnx').run(None, {'image': test_x})[0]
    error = np.abs(found - exact).max() / np.abs(exact).max()
    accuracy = (exact.argmax(1) == test_y).mean()
    print(f'held-out accuracy {accuracy:.4f} ({len(test_y)} images), {(HERE / "model.onnx").stat().st_size} bytes, '
          f'ONNX Runtime differs by {error:.1e}')
    assert accuracy >= 0.98 and error < 5e-6


if __name__ == '__main__':
    main()
