# SPDX-License-Identifier: Apache-2.0
"""Layers as PyTorch computes them: weights, inputs, outputs and gradients of small cases, in float64.

    python3 make_fixtures.py fixtures.safetensors

A case's tensors are named CASE/state/NAME, CASE/in/I, CASE/out/I, CASE/seed/I (what was pulled back from out I),
CASE/grad/NAME (of a parameter), CASE/din/I. tests/lua/nn/layers_test.lua builds the same layers and compares.
"""
import json
import struct
import sys

import torch
from torch import nn

DTYPES = {torch.float64: "F64", torch.int64: "I64", torch.bool: "BOOL"}
tensors = {}


def save(path):
    header, data, at = {}, [], 0
    for name in sorted(tensors):
        t = tensors[name].detach().contiguous()
        raw = t.numpy().tobytes()
        header[name] = {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def case(name, layer, *inputs, call=None):
    for p in layer.parameters():  # nothing stays at 0 or 1, where mistakes hide
        with torch.no_grad():
            p.copy_(torch.randn_like(p) * 0.4)
    for key, value in layer.state_dict().items():
        if value.dtype == torch.float64:
            tensors[f"{name}/state/{key}"] = value.clone()
    inputs = [t.detach().clone().requires_grad_(t.dtype == torch.float64) for t in inputs]
    for i, t in enumerate(inputs):
        tensors[f"{name}/in/{i}"] = t
    outputs = call(layer, *inputs) if call else layer(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    total = 0
    for i, y in enumerate(outputs):
        seed = torch.randn_like(y)
        tensors[f"{name}/out/{i}"], tensors[f"{name}/seed/{i}"] = y, seed
        total = total + (y * seed).sum()
    total.backward()
    for key, p in layer.named_parameters():
        tensors[f"{name}/grad/{key}"] = p.grad
    for i, t in enumerate(inputs):
        if t.requires_grad and t.grad is not None:
            tensors[f"{name}/din/{i}"] = t.grad


class Loss(nn.Module):
    def __init__(self, f, **options):
        super().__init__()
        self.f, self.options = f, options

    def forward(self, *inputs):
        return self.f(*inputs, **self.options)


def attention_cases():
    x, y = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    mask = torch.rand(5, 5) > 0.7
    mask.fill_diagonal_(False)
    padding = torch.tensor([[False] * 4 + [True], [False] * 5])
    mha = lambda **o: nn.MultiheadAttention(8, 2, batch_first=True, **o)
    case("mha_self", mha(), x, call=lambda l, x: l(x, x, x, need_weights=False)[0])
    case("mha_causal", mha(), x, torch.ones(5, 5, dtype=torch.bool).triu(1),
         call=lambda l, x, m: l(x, x, x, attn_mask=m, need_weights=False)[0])
    case("mha_masks", mha(), x, mask, padding,
         call=lambda l, x, m, p: l(x, x, x, attn_mask=m, key_padding_mask=p, need_weights=False)[0])
    case("mha_added", mha(bias=False), x, torch.randn(4, 5, 5),
         call=lambda l, x, m: l(x, x, x, attn_mask=m, need_weights=False)[0])
    case("mha_cross", mha(kdim=6, vdim=3), x, torch.randn(2, 7, 6), torch.randn(2, 7, 3), call=lambda l, q, k, v: l(q, k, v))
    case("mha_bias_kv", mha(add_bias_kv=True, add_zero_attn=True), x, y, mask[:, :1].expand(5, 7),
         call=lambda l, q, k, m: l(q, k, k, attn_mask=m, average_attn_weights=False))
    case("mha_flat", mha(), x[0].detach(), call=lambda l, x: l(x, x, x, need_weights=False)[0])
    case("mha_sequence_first", nn.MultiheadAttention(8, 2), x.transpose(0, 1).detach().clone(),
         call=lambda l, x: l(x, x, x, need_weights=False)[0])
    options = dict(dim_feedforward=12, dropout=0.0, batch_first=True)
    case("encoder_layer", nn.TransformerEncoderLayer(8, 2, **options), x, padding,
         call=lambda l, x, p: l(x, src_key_padding_mask=p))
    case("encoder_layer_pre", nn.TransformerEncoderLayer(8, 2, activation="gelu", norm_first=True, **options), x,
         torch.ones(5, 5, dtype=torch.bool).triu(1), call=lambda l, x, m: l(x, src_mask=m))
    case("decoder_layer", nn.TransformerDecoderLayer(8, 2, **options), x, y)
    case("decoder_layer_pre", nn.TransformerDecoderLayer(8, 2, norm_first=True, **options), x, y, mask,
         call=lambda l, x, y, m: l(x, y, tgt_mask=m))
    case("encoder", nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, **options), 2, nn.LayerNorm(8)), x)
    case("decoder", nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, **options), 2), x, y)
    case("transformer", nn.Transformer(8, 2, 1, 1, **options), y, x)


def other_cases():
    x = torch.randn(3, 6, 4, 5)
    case("layer_norm", nn.LayerNorm([4, 5]), x)
    case("group_norm", nn.GroupNorm(2, 6), x)
    case("group_norm_one", nn.GroupNorm(1, 6, affine=False), x)
    case("instance_norm1d", nn.InstanceNorm1d(6, affine=True), torch.randn(3, 6, 4))
    norm = nn.InstanceNorm2d(6, affine=True, track_running_stats=True)
    case("instance_norm2d", norm, x)
    for key in ("running_mean", "running_var"):
        tensors[f"instance_norm2d/after/{key}"] = getattr(norm, key)
    case("batch_norm3d", nn.BatchNorm3d(2), torch.randn(3, 2, 2, 3, 2))
    case("bilinear", nn.Bilinear(3, 4, 2), torch.randn(5, 3), torch.randn(5, 4))
    index = torch.tensor([0, 3, 1, 4, 4, 0, 2])
    for mode in ("mean", "sum", "max"):
        case("bag_" + mode, nn.EmbeddingBag(5, 3, mode=mode), index, torch.tensor([0, 2, 2, 5]))
    case("bag_padded", nn.EmbeddingBag(5, 3, padding_idx=0), index[:6].reshape(2, 3))
    case("bag_weighted", nn.EmbeddingBag(5, 3, mode="sum"), index[:6].reshape(2, 3), torch.randn(2, 3),
         call=lambda l, i, w: l(i, per_sample_weights=w))
    a, b = torch.randn(4, 6), torch.randn(4, 6)
    case("cosine_similarity", nn.CosineSimilarity(), a, b)
    case("pairwise_distance", nn.PairwiseDistance(3, keepdim=True), a, b)
    f = nn.functional
    labels, yes = torch.tensor([0, 5, 2, 2]), (torch.rand(4, 6) > 0.5).double()
    case("multi_margin", Loss(f.multi_margin_loss, weight=torch.arange(1, 7).double() / 4, margin=0.7), a, labels)
    case("multi_margin2", Loss(f.multi_margin_loss, p=2, reduction="none"), a, labels)
    case("multilabel_soft_margin", Loss(f.multilabel_soft_margin_loss), a, yes)
    case("multilabel_soft_margin_sum", Loss(f.multilabel_soft_margin_loss, reduction="sum",
                                            weight=torch.arange(1, 7).double() / 4), a, yes)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    attention_cases()
    other_cases()
    save(sys.argv[1])
