# SPDX-License-Identifier: MIT
"""The end of a step on 50 M parameters in one thread: ciuic beside PyTorch, in turn, the best of several turns each.

    taskset -c 0 .deps/peers/bin/python tests/peer/end_of_step.py build/tests/optimizer_benchmark [turns]

PyTorch: clip_grad_norm_, AdamW(fused=True), copy to bf16, zeroed gradients. ciuic: norm, and one pass of clipped AdamW that
writes the bf16 copy; its backward overwrites gradients. Both are measured in processor time, which other processes disturb
less; still, an idle machine is best: it is about memory's bandwidth. Exit code 1 where ciuic misses a bar. Not a ctest: it is
about time.
"""
import json
import os
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402

HIDDEN, INTERMEDIATE, VOCABULARY, LAYERS = 512, 1408, 17408, 10
STEPS = 5
# What ciuic's time is compared with, and how many times faster it must be.
BARS = {
    "update_alone": ("update_alone", 1.0),
    "end_of_step/fp32_moments": ("end_of_step", 1.25),
    "end_of_step/bf16_moments": ("end_of_step", 1.5),
}


def shapes():
    layer = [(HIDDEN, HIDDEN)] * 4 + [(INTERMEDIATE, HIDDEN)] * 3 + [(HIDDEN,)] * 2
    return [(VOCABULARY, HIDDEN)] + layer * LAYERS + [(HIDDEN,), (VOCABULARY, HIDDEN)]


class Peer:
    def __init__(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.parameters = [torch.nn.Parameter(torch.randn(s) * 0.02) for s in shapes()]
        for p in self.parameters:
            p.grad = torch.randn(p.shape) * 1e-3
        self.gradients = [p.grad for p in self.parameters]
        self.copies = [p.detach().bfloat16() for p in self.parameters]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def update_alone(self):
        self.optimizer.step()

    @torch.no_grad()
    def end_of_step(self):
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        torch._foreach_copy_(self.copies, self.parameters)
        torch._foreach_zero_(self.gradients)

    def best(self):
        times = {}
        for name in ("update_alone", "end_of_step"):
            run = getattr(self, name)
            run()  # makes the state
            for _ in range(STEPS):
                begin = time.process_time()
                run()
                times[name] = min(times.get(name, float("inf")), (time.process_time() - begin) * 1e3)
        return times


def ciuic(program):
    command = [program, "--benchmark_format=json", "--benchmark_min_time=0.2", "--benchmark_repetitions=3"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    times = {}
    for row in json.loads(output)["benchmarks"]:
        if row["run_type"] == "iteration":
            times[row["run_name"]] = min(times.get(row["run_name"], float("inf")), row["cpu_time"])
    return times


def merge(best, times):
    for name, t in times.items():
        best[name] = min(best.get(name, float("inf")), t)


def main():
    program = sys.argv[1]
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    peer, ours, theirs = Peer(), {}, {}
    for _ in range(turns):
        merge(ours, ciuic(program))
        merge(theirs, peer.best())
    print(f"norm: {ours['norm']:.1f} ms")
    missed = False
    for name, (other, bar) in BARS.items():
        ratio = theirs[other] / ours[name]
        missed = missed or ratio < bar
        print(f"{name}: ciuic {ours[name]:.1f} ms, PyTorch {torch.__version__} {theirs[other]:.1f} ms, "
              f"{ratio:.2f} times faster (bar {bar})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
