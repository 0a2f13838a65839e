"""The decoder: post-norm layers of self-attention, cross-attention and feed-forward network."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class PackedAttention(nn.Module):
    def __init__(self, embed, heads, dropout):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed, embed))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * embed))
        self.out_proj = nn.Linear(embed, embed)
        self.heads, self.dropout = heads, dropout

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        weight, bias = self.in_proj_weight, self.in_proj_bias
        e = weight.shape[1]
        if query is key:
            q, k = F.linear(query, weight[: 2 * e], bias[: 2 * e]).chunk(2, -1)
        else:
            q = F.linear(query, weight[:e], bias[:e])
            k = F.linear(key, weight[e : 2 * e], bias[e : 2 * e])
        v = F.linear(value, weight[2 * e :], bias[2 * e :])
        dropout = self.dropout if self.training else 0.0
        q, k, v = self.split(q), self.split(k), self.split(v)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.out_proj(x.transpose(1, 2).flatten(2))


class Attention(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.attn = PackedAttention(*arguments)

    def forward(self, *arguments):
        return self.attn(*arguments)


class FeedForward(nn.Module):
    def __init__(self, embed, width, dropout):
        super().__init__()
        up = nn.Sequential(nn.Linear(embed, width), nn.ReLU(inplace=True), nn.Dropout(dropout))
        self.layers = nn.Sequential(up, nn.Linear(width, embed))

    def forward(self, x):
        return self.layers(x)

    def linears(self):
        return self.layers[0][0], self.layers[1]


class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        embed, rate = config.embed, config.dropout
        rates = rate, config.cross_attention_dropout
        self.attentions = nn.ModuleList(Attention(embed, config.heads, r) for r in rates)
        self.ffns = nn.ModuleList([FeedForward(embed, config.feedforward, rate)])
        self.norms = nn.ModuleList(nn.LayerNorm(embed) for _ in range(3))
        self.drop = nn.Dropout(rate)

    def forward(self, q, position, memory, key, mask):
        placed = q + position
        q = self.norms[0](q + self.drop(self.attentions[0](placed, placed, q, mask)))
        attended = self.attentions[1](q + position, key, memory)
        q = self.norms[1](q + self.drop(attended))
        return self.norms[2](q + self.drop(self.ffns[0](q)))


class Decoder(nn.Module):
    recompute = False  # activation checkpointing of every layer

    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.post_norm = nn.LayerNorm(config.embed)

    def forward(self, position, memory, key, mask=None):
        """Yields each layer's normalised output as soon as it is there."""
        q = torch.zeros_like(position)
        for layer in self.layers:
            inputs = q, position, memory, key, mask
            if self.recompute and torch.is_grad_enabled():
                q = checkpoint(layer, *inputs, use_reentrant=False)
            else:
                q = layer(*inputs)
            yield self.post_norm(q)


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.decoder = Decoder(config)

    def initialise(self):
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, PackedAttention):
                nn.init.xavier_uniform_(module.in_proj_weight)
                nn.init.zeros_(module.in_proj_bias)
