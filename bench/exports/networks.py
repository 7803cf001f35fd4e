"""Networks to export: of each a function that gives the module, its inputs, and which axes of the inputs are open."""
import functools

import torch


def picture(module, side=64, open_axes=None):
    return module, (torch.randn(2, 3, side, side),), {'x': open_axes or {0: 'batch'}}


def of_torchvision(name, side=64, **settings):
    def make():
        import torchvision
        return picture(getattr(torchvision.models, name)(weights=None, **settings), side)
    return make


def of_timm(name, side=64, **settings):
    def make():
        import timm
        return picture(timm.create_model(name, pretrained=False, **settings), side)
    return make


def of_segmentation(name):
    def make():
        import torchvision

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None)

            def forward(self, x):
                return self.net(x)['out']
        return picture(Out())
    return make


def of_detection(name, **settings):
    """One picture: boxes, labels and scores, as many as are found; thresholds are low, so that random weights find some."""
    def make():
        import torchvision
        sizes = {} if name.startswith('ssd') else {'min_size': 96, 'max_size': 128}
        net = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, num_classes=5, **sizes, **settings)

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x):
                found = self.net([x[0]])[0]
                return found['boxes'], found['scores'], found['labels']
        return Out(), (torch.rand(1, 3, 96, 128),), {}
    return make


def of_transformers(model, config, inputs='tokens', **settings):
    def make():
        import transformers
        made = getattr(transformers, config)(**settings)
        net = getattr(transformers, model)(made)

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x):
                if inputs == 'tokens':
                    return self.net(input_ids=x, use_cache=False)[0] if hasattr(made, 'use_cache') else self.net(input_ids=x)[0]
                return self.net(x)[0]
        if inputs == 'tokens':
            return Out(), (torch.randint(0, 90, (2, 12)),), {'x': {0: 'batch', 1: 'length'}}
        if inputs == 'sound':
            return Out(), (torch.randn(1, 4000),), {'x': {0: 'batch'}}
        return Out(), (torch.randn(2, 3, 64, 64),), {'x': {0: 'batch'}}
    return make


def with_cache(model, config, **settings):
    """A decoder's step: one token, keys and values of the past as tensors."""
    def make():
        import transformers
        from transformers import DynamicCache
        made = getattr(transformers, config)(**settings)
        net = getattr(transformers, model)(made)
        layers, heads = made.num_hidden_layers, getattr(made, 'num_key_value_heads', None) or made.num_attention_heads
        width = made.hidden_size // made.num_attention_heads

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x, *past):
                cache = DynamicCache()
                for i in range(layers):
                    cache.update(past[2 * i], past[2 * i + 1], i)
                out = self.net(input_ids=x, past_key_values=cache, use_cache=True)
                flat = []
                for layer in out.past_key_values.layers:
                    flat += [layer.keys, layer.values]
                return (out.logits, *flat)
        past = tuple(torch.randn(1, heads, 5, width) for _ in range(2 * layers))
        return Out(), (torch.randint(0, 90, (1, 1)), *past), {}
    return make


def of_diffusers(kind, **settings):
    def make():
        import diffusers
        net = getattr(diffusers, kind)(**settings)

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x, *more):
                if kind == 'UNet2DConditionModel':
                    return self.net(x, more[0], more[1]).sample
                if kind.startswith('UNet'):
                    return self.net(x, more[0]).sample
                return self.net.decode(self.net.encode(x).latent_dist.mode()).sample if kind == 'AutoencoderKL' else self.net(x).sample
        if kind == 'UNet2DConditionModel':
            return Out(), (torch.randn(1, 4, 16, 16), torch.tensor([5]), torch.randn(1, 7, 32)), {}
        if kind.startswith('UNet'):
            return Out(), (torch.randn(1, 3, 32, 32), torch.tensor([5])), {}
        return Out(), (torch.randn(1, 3, 32, 32),), {}
    return make


SMALL = dict(vocab_size=99, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
UNET = dict(block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8)
text = functools.partial(of_transformers)

NETWORKS = {
    **{n: of_torchvision(n) for n in
       ('resnet18', 'resnext50_32x4d', 'mobilenet_v2', 'mobilenet_v3_small', 'efficientnet_b0', 'shufflenet_v2_x0_5', 'squeezenet1_1',
        'densenet121', 'mnasnet0_5', 'regnet_y_400mf', 'convnext_tiny', 'vgg11')},
    'googlenet': of_torchvision('googlenet', init_weights=False, aux_logits=False),
    'vit_b_32': of_torchvision('vit_b_32', image_size=64),
    'swin_t': of_torchvision('swin_t'), 'maxvit_t': of_torchvision('maxvit_t', 224),
    'deeplabv3': of_segmentation('deeplabv3_mobilenet_v3_large'), 'fcn': of_segmentation('fcn_resnet50'),
    'lraspp': of_segmentation('lraspp_mobilenet_v3_large'),
    'fasterrcnn': of_detection('fasterrcnn_mobilenet_v3_large_320_fpn', box_score_thresh=0.01),
    'retinanet': of_detection('retinanet_resnet50_fpn', score_thresh=1e-3), 'fcos': of_detection('fcos_resnet50_fpn', score_thresh=1e-3),
    'ssdlite': of_detection('ssdlite320_mobilenet_v3_large'), 'maskrcnn': of_detection('maskrcnn_resnet50_fpn', box_score_thresh=0.01),
    **{n: of_timm(n) for n in
       ('mobilenetv4_conv_small', 'efficientvit_b0', 'ghostnet_100', 'hardcorenas_a', 'repvgg_a0', 'resnest14d', 'tinynet_e', 'edgenext_xx_small',
        'fastvit_t8', 'starnet_s1', 'tf_efficientnetv2_b0', 'mobilevit_xxs', 'poolformer_s12', 'convnextv2_atto', 'lcnet_050', 'dla46_c')},
    'deit_tiny': of_timm('deit_tiny_patch16_224', 224), 'mixer_s32': of_timm('mixer_s32_224', 224), 'swin_tiny': of_timm('swin_tiny_patch4_window7_224', 224),
    'levit_128s': of_timm('levit_128s', 224), 'coat_lite_tiny': of_timm('coat_lite_tiny', 224), 'eva02_tiny': of_timm('eva02_tiny_patch14_224', 224),
    'bert': text('BertModel', 'BertConfig', **SMALL), 'roberta': text('RobertaModel', 'RobertaConfig', **SMALL),
    'distilbert': text('DistilBertModel', 'DistilBertConfig', vocab_size=99, dim=64, n_layers=2, n_heads=4, hidden_dim=96),
    'electra': text('ElectraModel', 'ElectraConfig', embedding_size=32, **SMALL), 'mpnet': text('MPNetModel', 'MPNetConfig', **SMALL),
    'albert': text('AlbertModel', 'AlbertConfig', embedding_size=32, **SMALL), 'deberta': text('DebertaV2Model', 'DebertaV2Config', **SMALL),
    'gpt2': text('GPT2LMHeadModel', 'GPT2Config', vocab_size=99, n_embd=64, n_layer=2, n_head=4),
    'llama': text('LlamaForCausalLM', 'LlamaConfig', num_key_value_heads=2, **SMALL),
    'qwen2': text('Qwen2ForCausalLM', 'Qwen2Config', num_key_value_heads=2, **SMALL),
    'gemma': text('GemmaForCausalLM', 'GemmaConfig', num_key_value_heads=2, head_dim=16, **SMALL),
    'phi': text('PhiForCausalLM', 'PhiConfig', **SMALL), 'opt': text('OPTModel', 'OPTConfig', vocab_size=99, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=96, word_embed_proj_dim=64),
    'mistral': text('MistralForCausalLM', 'MistralConfig', num_key_value_heads=2, **SMALL),
    't5_encoder': text('T5EncoderModel', 'T5Config', vocab_size=99, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4),
    'vit': text('ViTModel', 'ViTConfig', 'picture', image_size=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96),
    'segformer': text('SegformerModel', 'SegformerConfig', 'picture', depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64]),
    'dinov2': text('Dinov2Model', 'Dinov2Config', 'picture', image_size=70, patch_size=14, hidden_size=64, num_hidden_layers=2, num_attention_heads=4),
    'wav2vec2': text('Wav2Vec2Model', 'Wav2Vec2Config', 'sound', hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                     conv_dim=[32] * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4),
    'llama_cache': with_cache('LlamaForCausalLM', 'LlamaConfig', num_key_value_heads=2, **SMALL),
    'qwen2_cache': with_cache('Qwen2ForCausalLM', 'Qwen2Config', num_key_value_heads=2, **SMALL),
    'gpt2_cache': with_cache('GPT2LMHeadModel', 'GPT2Config', vocab_size=99, n_embd=64, n_layer=2, n_head=4),
    'unet': of_diffusers('UNet2DModel', sample_size=32, down_block_types=('DownBlock2D', 'AttnDownBlock2D'),
                         up_block_types=('AttnUpBlock2D', 'UpBlock2D'), **UNET),
    'unet_condition': of_diffusers('UNet2DConditionModel', sample_size=16, cross_attention_dim=32, attention_head_dim=8,
                                   down_block_types=('DownBlock2D', 'CrossAttnDownBlock2D'),
                                   up_block_types=('CrossAttnUpBlock2D', 'UpBlock2D'), **UNET),
    'vae': of_diffusers('AutoencoderKL', block_out_channels=(32, 64), norm_num_groups=8,
                        down_block_types=('DownEncoderBlock2D', 'DownEncoderBlock2D'), up_block_types=('UpDecoderBlock2D', 'UpDecoderBlock2D')),
}
