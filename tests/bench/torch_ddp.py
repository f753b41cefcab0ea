#!/usr/bin/env python3
"""The rival of data-parallel training: PyTorch's DistributedDataParallel with Gloo on CPUs, ranks as processes of this machine.

  torch_ddp.py --model gpt2|small --dtype fp32|bf16 --nproc 2 --threads 1 [--steps N] [--bucket-mb 25] [--clip 1.0] [--compile]

The model and its global batch are those of versus.py (gpt2: B=4 T=256; small: B=12 T=256), dealt evenly to the ranks; tokens are random, the
optimizer is the fused AdamW. Rank 0 prints one JSON line: tok_s over all ranks, peak_rss_mb of the largest rank, the losses' mean over ranks.
A bucket larger than the model (--bucket-mb 4096) leaves nothing to overlap: the difference is what overlap is worth.
"""
import argparse
import json
import os
import resource
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

MODELS = {"gpt2": dict(layers=12, heads=12, width=768, vocab=50257, context=1024, batch=4, seq=256),
          "small": dict(layers=6, heads=6, width=384, vocab=256, context=256, batch=12, seq=256)}


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        shape = x.shape[:2] + (self.heads, -1)
        q, k, v = [part.reshape(shape).transpose(1, 2) for part in self.qkv(self.before_attention(x)).chunk(3, dim=-1)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.mix(y)
        return x + self.down(F.gelu(self.up(self.before_mlp(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, layers, heads, width, vocab, context, **_):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.last_norm = nn.LayerNorm(width)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions.weight[:ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.last_norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def optimizer_of(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [dict(params=matrices, weight_decay=0.1), dict(params=vectors, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=True)


def train(rank, args, port):
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=args.nproc)
    config = MODELS[args.model]
    rows = config["batch"] // args.nproc
    torch.manual_seed(1)
    model = Model(**config)
    ranks = DistributedDataParallel(model, bucket_cap_mb=args.bucket_mb, gradient_as_bucket_view=True)
    step_model = torch.compile(ranks) if args.compile else ranks
    optimizer = optimizer_of(model)
    losses, times = [], []
    for step in range(args.steps):
        window = torch.randint(config["vocab"], (rows, config["seq"] + 1), generator=torch.Generator().manual_seed(step * args.nproc + rank))
        dist.barrier()
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = step_model(window[:, :-1], window[:, 1:])
        loss.backward()
        if args.clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mean = loss.detach().float()
        dist.all_reduce(mean)
        losses.append(mean.item() / args.nproc)
        times.append(time.perf_counter() - begin)
    peak = torch.tensor(float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024)
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    if rank == 0:
        tokens = rows * args.nproc * config["seq"]
        print(json.dumps(dict(model=args.model, dtype=args.dtype, nproc=args.nproc, threads=args.threads, bucket_mb=args.bucket_mb, clip=args.clip,
                              tok_s=round(tokens / statistics.median(times[2:]), 1), tok_s_best=round(tokens / min(times[2:]), 1),
                              peak_rss_mb=round(peak.item()), losses=[round(x, 5) for x in losses])), flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    if args.steps < 3 or MODELS[args.model]["batch"] % args.nproc:
        parser.error("needs three steps or more, and a batch that the ranks can share evenly")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    mp.start_processes(train, (args, port), nprocs=args.nproc, start_method="spawn")


if __name__ == "__main__":
    sys.exit(main())
