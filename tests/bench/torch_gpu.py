#!/usr/bin/env python3
"""The rival on a GPU: GPT-2 124M under torch.compile with bf16 autocast, TF32, flash attention, fused AdamW and a padded vocabulary.

  torch_gpu.py --batch 64 --seq 1024 [--steps N]

Prints one JSON line: tokens_per_s (median), best_tokens_per_s, peak_bytes, compile_s, losses.
"""
import argparse
import json
import statistics
import sys
import time

import torch
from torch_ddp import MODELS, Model, optimizer_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    config = MODELS["gpt2"]
    model = Model(**dict(config, vocab=(config["vocab"] + 127) // 128 * 128)).cuda()
    step_model, optimizer = torch.compile(model), optimizer_of(model)
    windows = torch.randint(config["vocab"], (4, args.batch, args.seq + 1), device="cuda")
    losses, times = [], []
    for step in range(args.steps + 3):
        window = windows[step % len(windows)]
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step_model(window[:, :-1], window[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        losses.append(loss.item())
    tokens, timed = args.batch * args.seq, times[3:]
    print(json.dumps(dict(tokens_per_s=tokens / statistics.median(timed), best_tokens_per_s=tokens / min(timed), compile_s=sum(times[:3]),
                          peak_bytes=torch.cuda.max_memory_allocated(), torch=torch.__version__, losses=[round(x, 5) for x in losses[:5]])))


sys.exit(main())
