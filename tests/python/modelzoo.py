"""Models of torchvision, timm and transformers, made small by their own settings: inference and a training step by torch.compile.

    python tests/python/modelzoo.py [--part K/N] [--only PATTERN] [--out FILE]
    python tests/python/modelzoo.py --table FILE

Weights are random, inputs too. Results of inference, the loss of a training step and its gradients are compared with eager
PyTorch in double precision, and so is eager PyTorch in single precision, by the same rule (see `near`). What is not installed is
left out and said. FILE keeps the outcomes, as opinfo.py's does.
"""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import oclc.torch as oclc_torch
import outcomes
import torch
from oclc.torch import backend as oclc_backend
from outcomes import Outcome, failed, tensors
from torch import nn
from torch.nn import functional as F

# One draw for all: a model that is wrong with it is reported as wrong.
SEED = 3
# Gradients jump where an activation has a corner. Which side of it an activation lies on, within a rounding, double precision
# cannot say: it is asked at the point itself and at as many others, where each layer's result is off by a rounding of single
# precision.
POINTS = 12
# Of the gradient of a parameter so many elements are compared, drawn once.
MOST = 20_000
# A result is right that lies as far from that of the nearest point as these lie from one another, times this, plus that.
FACTOR, ABSOLUTE = 4.0, 1e-5

Case = tuple[nn.Module, dict[str, torch.Tensor], dict[str, torch.Tensor]]  # model, inputs, and further inputs for the loss


def image(model: nn.Module, size: int = 64, channels: int = 3, batch: int = 2) -> Case:
    return model, {"": torch.randn(batch, channels, size, size)}, {"labels": torch.randint(10, (batch,))}


# ---- torchvision


def torchvision_models() -> dict[str, Callable[[], Case]]:
    # Its own extension wants the torch that it was built beside; models do without, but for the names of two operators.
    library = torch.library.Library("torchvision", "DEF")
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    m = importlib.import_module("torchvision.models")
    few = {"num_classes": 10}
    return {
        "alexnet": lambda: image(m.alexnet(**few)),
        "resnet_basic": lambda: image(m.ResNet(m.resnet.BasicBlock, [1, 1, 1, 1], **few)),
        "resnet_bottleneck": lambda: image(m.ResNet(m.resnet.Bottleneck, [1, 1, 1, 1], **few)),
        "resnext": lambda: image(m.ResNet(m.resnet.Bottleneck, [1, 1, 1, 1], groups=8, width_per_group=4, **few)),
        "densenet": lambda: image(m.DenseNet(8, (2, 2, 2, 2), 16, **few)),
        "mobilenet_v2": lambda: image(m.MobileNetV2(width_mult=0.25, **few)),
        "mobilenet_v3_small": lambda: image(m.mobilenet_v3_small(**few)),
        "efficientnet_b0": lambda: image(m.efficientnet_b0(stochastic_depth_prob=0.0, **few)),
        "shufflenet_v2": lambda: image(m.ShuffleNetV2([1, 1, 1], [8, 16, 32, 64, 64], **few)),
        "squeezenet1_1": lambda: image(m.squeezenet1_1(**few)),
        "mnasnet": lambda: image(m.MNASNet(0.25, **few)),
        "googlenet": lambda: image(m.GoogLeNet(aux_logits=False, init_weights=False, **few)),
        "regnet_y": lambda: image(
            m.RegNet(m.regnet.BlockParams.from_init_params(depth=4, w_0=16, w_a=16.0, w_m=2.0, group_width=8, se_ratio=0.25), **few)
        ),
        "convnext": lambda: image(
            m.ConvNeXt([m.convnext.CNBlockConfig(16, 32, 1), m.convnext.CNBlockConfig(32, None, 1)], **few)
        ),
        "vit": lambda: image(m.VisionTransformer(32, 8, 2, 2, 32, 64, **few), 32),
        "swin": lambda: image(m.SwinTransformer([2, 2], 16, [2, 2], [2, 2], [4, 4], stochastic_depth_prob=0.0, **few), 32),
    }  # fmt: skip


# ---- timm


def timm_models() -> dict[str, Callable[[], Case]]:
    timm = importlib.import_module("timm")

    def make(name: str, size: int = 64, **settings: Any) -> Callable[[], Case]:
        return lambda: image(timm.create_model(name, num_classes=10, **settings), size)

    return {
        "resnet10t": make("resnet10t"),
        "mobilenetv3_small_050": make("mobilenetv3_small_050"),
        "ghostnet_050": make("ghostnet_050"),
        "convnext_atto": make("convnext_atto", depths=(1, 1, 1, 1)),
        "deit_tiny": make("deit_tiny_patch16_224", 32, img_size=32, depth=2, patch_size=8),
        "mixer": make("mixer_s16_224", 32, img_size=32, num_blocks=2, patch_size=8),
        "poolformer": make("poolformer_s12"),
        "swinv2": make("swinv2_cr_tiny_ns_224", 64, img_size=64, depths=(1, 1), num_heads=(2, 4), embed_dim=32, window_size=4),
        "efficientnet_lite0": make("efficientnet_lite0"),
    }


# ---- transformers


def transformers_models() -> dict[str, Callable[[], Case]]:
    t = importlib.import_module("transformers")
    words, length, labels = 99, 12, 3
    no_dropout = ("dropout", "attention_dropout", "hidden_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop",
                  "embd_pdrop", "attn_pdrop", "dropout_rate", "classifier_dropout", "seq_classif_dropout", "activation_dropout",
                  "drop_path_rate", "encoder_layerdrop", "decoder_layerdrop", "layerdrop")  # fmt: skip

    def make(model: str, config: str, case: Callable[[nn.Module], Case], **settings: Any) -> Callable[[], Case]:
        def build() -> Case:
            given = getattr(t, config)(**settings)
            for name in no_dropout:
                if isinstance(getattr(given, name, None), float):
                    setattr(given, name, 0.0)
            if hasattr(given, "use_cache"):
                given.use_cache = False
            return case(getattr(t, model)(given))

        return build

    def tokens() -> torch.Tensor:
        return torch.randint(3, words, (2, length))

    def causal(model: nn.Module) -> Case:
        ids = tokens()
        return model, {"input_ids": ids}, {"labels": ids}

    def sentence(model: nn.Module) -> Case:
        mask = torch.ones(2, length, dtype=torch.int64)
        mask[1, 8:] = 0
        return model, {"input_ids": tokens(), "attention_mask": mask}, {"labels": torch.randint(labels, (2,))}

    def to_text(model: nn.Module) -> Case:
        return model, {"input_ids": tokens(), "decoder_input_ids": tokens()}, {"labels": tokens()}

    def speech(model: nn.Module) -> Case:
        return model, {"input_features": torch.randn(2, 8, 40), "decoder_input_ids": tokens()}, {"labels": tokens()}

    def picture(model: nn.Module) -> Case:
        return model, {"pixel_values": torch.randn(2, 3, 32, 32)}, {"labels": torch.randint(labels, (2,))}

    decoder = {"vocab_size": words, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
               "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
    encoder = {"vocab_size": words, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
               "max_position_embeddings": 64, "num_labels": labels}  # fmt: skip
    vision = {"image_size": 32, "num_labels": labels}
    return {
        "llama": make("LlamaForCausalLM", "LlamaConfig", causal, **decoder),
        "mistral": make("MistralForCausalLM", "MistralConfig", causal, **decoder),
        "qwen2": make("Qwen2ForCausalLM", "Qwen2Config", causal, **decoder),
        "qwen3": make("Qwen3ForCausalLM", "Qwen3Config", causal, head_dim=8, **decoder),
        "gemma": make("GemmaForCausalLM", "GemmaConfig", causal, head_dim=8, **decoder),
        "gpt2": make("GPT2LMHeadModel", "GPT2Config", causal, vocab_size=words, n_embd=32, n_layer=2, n_head=4, n_positions=64),
        "bert": make("BertForSequenceClassification", "BertConfig", sentence, **encoder),
        "roberta": make("RobertaForSequenceClassification", "RobertaConfig", sentence, **encoder),
        "distilbert": make("DistilBertForSequenceClassification", "DistilBertConfig", sentence, vocab_size=words, dim=32, hidden_dim=64,
                           n_layers=2, n_heads=4, max_position_embeddings=64, num_labels=labels),
        "t5": make("T5ForConditionalGeneration", "T5Config", to_text, vocab_size=words, d_model=32, d_kv=8, d_ff=64, num_layers=2,
                   num_heads=4, decoder_start_token_id=0),
        "whisper": make("WhisperForConditionalGeneration", "WhisperConfig", speech, vocab_size=words, num_mel_bins=8, d_model=32,
                        encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                        decoder_ffn_dim=64, max_source_positions=20, max_target_positions=64, pad_token_id=0, bos_token_id=1,
                        eos_token_id=2, decoder_start_token_id=1),
        "vit": make("ViTForImageClassification", "ViTConfig", picture, patch_size=8, hidden_size=32, num_hidden_layers=2,
                    num_attention_heads=4, intermediate_size=64, **vision),
        "swin": make("SwinForImageClassification", "SwinConfig", picture, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 2],
                     window_size=4, **vision),
        "convnext": make("ConvNextForImageClassification", "ConvNextConfig", picture, hidden_sizes=[16, 32], depths=[1, 1],
                         num_stages=2, **vision),
    }  # fmt: skip


SOURCES = {"torchvision": torchvision_models, "timm": timm_models, "transformers": transformers_models}


# ---- the comparison


def wide(values: dict[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {name: t.to(dtype) if t.is_floating_point() else t for name, t in values.items()}


def called(model: Any, inputs: dict[str, torch.Tensor]) -> Any:
    return model(inputs[""]) if "" in inputs else model(**inputs)


def training_step(model: Any, parameters: list[nn.Parameter], inputs: dict[str, torch.Tensor], more: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The loss, then gradients of all parameters as one vector, of each at most MOST elements."""
    if "" in inputs:
        loss = F.cross_entropy(model(inputs[""]), more["labels"])
    else:
        loss = model(**inputs, **more).loss
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    flat = [drawn((g if g is not None else torch.zeros_like(p)).reshape(-1)) for g, p in zip(found, parameters, strict=True)]
    return [loss.detach(), torch.cat(flat)]


def drawn(gradient: torch.Tensor) -> torch.Tensor:
    if gradient.numel() <= MOST:
        return gradient
    return gradient[torch.randint(gradient.numel(), (MOST,), generator=torch.Generator().manual_seed(SEED))]


def evaluated(model: nn.Module, step: Any, inputs: dict[str, torch.Tensor], more: dict[str, torch.Tensor], results: list[torch.Tensor]) -> None:
    """Appends the result of inference, the loss and the gradients."""
    model.eval()
    with torch.no_grad():
        results.append(max(tensors(called(step, inputs)), key=lambda t: t.numel() if t.is_floating_point() else -1))
    model.train()
    results += training_step(step, [p for p in model.parameters() if p.requires_grad], inputs, more)


def apart(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm().clamp_min(1e-30))


def nudge(module: nn.Module, inputs: Any, result: Any) -> Any:
    """A hook: the result off by up to one unit in the last place of single precision, of itself and of what is usual beside it."""
    if not isinstance(result, torch.Tensor) or not result.is_floating_point():
        return result
    size = result.detach().abs() + result.detach().pow(2).mean().sqrt()
    return result + size * (2 * torch.rand_like(result) - 1) * 2.0**-23


def points(model: nn.Module, inputs: dict[str, torch.Tensor], more: dict[str, torch.Tensor]) -> list[list[torch.Tensor]]:
    """What double precision gives at the point itself, and at others within a rounding of it."""
    inputs, more = wide(inputs, torch.float64), wide(more, torch.float64)
    found: list[list[torch.Tensor]] = []
    for point in range(POINTS + 1):
        double = copy.deepcopy(model).double()
        if point:
            for module in double.modules():
                if not list(module.children()):
                    module.register_forward_hook(nudge)
        found.append([])
        evaluated(double, double, inputs, more, found[-1])
    return found


def near(found: torch.Tensor, exact: list[torch.Tensor]) -> tuple[float, float]:
    """How far a result lies from that of the nearest point, and how far it may: about as far as points lie from their nearest."""
    others = [min(apart(one, two) for two in exact if two is not one) for one in exact]
    return min(apart(found, one) for one in exact), FACTOR * sorted(others)[len(others) // 2] + ABSOLUTE


def prepare(model: nn.Module) -> None:
    """Nothing is drawn, and no layer is all zeros, as some begin whose results then say nothing."""
    for parameter in model.parameters():
        if parameter.dim() > 1 and not parameter.detach().any():
            nn.init.normal_(parameter, std=0.02)
    for module in model.modules():
        if isinstance(module, (nn.Dropout, nn.Dropout2d)):
            module.p = 0.0
        elif type(module).__name__ == "DropPath":
            module.drop_prob = 0.0  # type: ignore[assignment]


def check(name: str, build: Callable[[], Case]) -> Outcome:
    torch._dynamo.reset()
    torch.manual_seed(SEED)
    try:
        model, inputs, more = build()
        prepare(model)
        exact = points(model, inputs, more)
        theirs: list[torch.Tensor] = []
        eager = copy.deepcopy(model)
        evaluated(eager, eager, inputs, more, theirs)
    except Exception as error:
        return Outcome(name, "none", f"eager: {type(error).__name__}: {error}")
    ours: list[torch.Tensor] = []
    before = oclc_torch.counters.compiled + oclc_torch.counters.cached
    try:
        evaluated(model, torch.compile(model, backend=oclc_backend, options={"device": "cpu"}), inputs, more, ours)
    except Exception as error:
        kind, reason = failed(error)
        return Outcome(name, kind, f"{('inference', 'training')[min(len(ours), 1)]}: {' '.join(reason.split())}")
    plans = oclc_torch.counters.compiled + oclc_torch.counters.cached - before
    said, good = [], True
    for found, eagers, *at in zip(ours, theirs, *exact, strict=True):
        mine, allowed = near(found, at)
        good = good and math.isfinite(mine) and mine <= allowed
        beyond = "" if near(eagers, at)[0] <= allowed else "!"
        said.append(f"{mine:.1e} | {near(eagers, at)[0]:.1e}{beyond} | {allowed:.1e}")
    at_itself = [f"{apart(one[-1], exact[0][-1]):.1e}" for one in (ours, theirs)]
    return Outcome(name, "passed" if good else "wrong", f"{' | '.join(said)} | {' | '.join(at_itself)} | {plans}")


def cases() -> Iterator[tuple[str, Callable[[], Outcome]]]:
    for source, models in SOURCES.items():
        try:
            found = models()
        except ImportError as error:
            print(f"{source} is left out: {error}", flush=True)
            continue
        for name, build in found.items():
            yield f"{source}.{name}", lambda n=f"{source}.{name}", b=build: check(n, b)  # type: ignore[misc]


def rows(file: str) -> Iterator[str]:
    yield "| model | inference | eager's | may be | loss | eager's | may be | gradients | eager's | may be | at the point | eager's | plans |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for name, row in outcomes.kept(file).items():
        yield f"| {name} | {row['reason'] if row['kind'] == 'passed' else row['kind'] + ': ' + row['reason'][:150].replace('|', '/')} |"


def main() -> None:
    given = outcomes.parser(str(__doc__)).parse_args()
    if given.table:
        print("\n".join(line for file in given.table for line in rows(file)))
        return
    outcomes.run(given, "Models", cases())


if __name__ == "__main__":
    main()
