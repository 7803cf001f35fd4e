"""GPT-2 as PyTorch functions, in training form without dropout, from the initializers of an exported ONNX graph."""
import onnx
import torch
from torch.nn import functional

HEAD = 64  # channels of a head of attention


class Gpt:
    """Its parameters and what they make of tokens [N, T]: logits [N, T, vocabulary]."""

    def __init__(self, path):
        tensors = {i.name: torch.from_numpy(onnx.numpy_helper.to_array(i).copy()) for i in onnx.load(path).graph.initializer}
        self.values = {k.removeprefix('m.'): v.requires_grad_() for k, v in tensors.items() if k.startswith('m.')}
        self.parameters = list(self.values.values())
        self.blocks = len([k for k in self.values if k.endswith('ln_1.weight')])
        self.vocabulary = self.values['lm_head.weight'].shape[0]

    def __call__(self, tokens):
        v = self.values
        x = functional.embedding(tokens, v['lm_head.weight']) + v['transformer.wpe.weight'][:tokens.shape[1]]
        for b in range(self.blocks):
            x = self.block(x, {k: v[f'transformer.h.{b}.{k}'] for k in (
                'ln_1.weight', 'ln_1.bias', 'attn.c_attn.weight', 'attn.c_attn.bias', 'attn.c_proj.weight', 'attn.c_proj.bias',
                'ln_2.weight', 'ln_2.bias', 'mlp.c_fc.weight', 'mlp.c_fc.bias', 'mlp.c_proj.weight', 'mlp.c_proj.bias')})
        x = functional.layer_norm(x, x.shape[-1:], v['transformer.ln_f.weight'], v['transformer.ln_f.bias'])
        return functional.linear(x, v['lm_head.weight'])

    def block(self, x, w):
        n, t, channels = x.shape

        def product(x, name):
            return torch.addmm(w[f'{name}.bias'], x.reshape(n * t, -1), w[f'{name}.weight']).view(n, t, -1)

        def norm(name):
            return functional.layer_norm(x, (channels,), w[f'{name}.weight'], w[f'{name}.bias'])
        heads = [y.view(n, t, -1, HEAD).transpose(1, 2) for y in product(norm('ln_1'), 'attn.c_attn').split(channels, 2)]
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + product(seen.transpose(1, 2).reshape(n, t, channels), 'attn.c_proj')
        return x + product(functional.gelu(product(norm('ln_2'), 'mlp.c_fc'), approximate='tanh'), 'mlp.c_proj')
