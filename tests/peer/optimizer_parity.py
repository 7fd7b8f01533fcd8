# SPDX-License-Identifier: MIT
"""The update rules against PyTorch: torch.optim's AdamW and SGD, and Lion as its paper's authors published it for PyTorch.

Both sides compute in fp32, in nearly the same order; PyTorch fuses some multiply-adds. 100 steps, compared after each.
"""
import os
import pathlib
import subprocess
import unittest

import torch

TRACE = os.environ["CIUIC_OPTIMIZER_TRACE"]
PLUGINS = pathlib.Path(os.environ["CIUIC_PLUGINS"])
STEPS, COUNT = 100, 5000
# A step rounds the value once or twice: 100 steps err by less than 100 units in the last place of the larger of value and 1.
TOLERANCE = 100 * 2.0**-23


class Lion(torch.optim.Optimizer):
    """github.com/google/automl, lion/lion_pytorch.py."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["weight_decay"])
                mean = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p.add_(torch.sign(mean * beta1 + p.grad * (1 - beta1)), alpha=-group["lr"])
                mean.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def numbers():
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(STEPS + 1, COUNT, generator=generator)
    rows[1:, ::7] *= 1e-4  # where epsilon matters
    rows[1:, ::11] = 0
    return rows


def ciuic(plugin, options):
    command = [TRACE, str(PLUGINS / f"lib{plugin}.so"), str(STEPS)] + [f"{k}={str(v).lower()}" for k, v in options.items()]
    out = subprocess.run(command, input=numbers().numpy().tobytes(), capture_output=True, check=True, timeout=120).stdout
    return torch.frombuffer(bytearray(out), dtype=torch.float32).view(STEPS, COUNT)


def peer(make):
    rows = numbers()
    parameter = torch.nn.Parameter(rows[0].clone())
    optimizer = make([parameter])
    steps = []
    for step in range(STEPS):
        parameter.grad = rows[step + 1].clone()
        optimizer.step()
        steps.append(parameter.detach().clone())
    return torch.stack(steps)


class Parity(unittest.TestCase):
    def compare(self, ours, theirs, allowed=0):
        error = (ours.double() - theirs.double()).abs() / theirs.double().abs().clamp(min=1)
        off = (error > TOLERANCE).any(0).sum().item()
        print(f"{self.id()}: largest error {error.max().item() * 2**23:.1f} units of 2^-23, {off} elements off")
        self.assertLessEqual(off, allowed)

    def test_adamw(self):
        for decay in (0.0, 0.1):
            ours = ciuic("adamw", {"beta1": 0.9, "beta2": 0.95, "weight_decay": decay})
            theirs = peer(lambda p: torch.optim.AdamW(p, lr=1e-2, betas=(0.9, 0.95), weight_decay=decay))
            self.compare(ours, theirs)

    def test_sgd(self):
        cases = [(0.0, 0.0, 0.0, False), (0.0, 0.0, 0.01, False), (0.9, 0.0, 0.01, False), (0.9, 0.5, 0.01, False),
                 (0.9, 0.0, 0.01, True)]
        for momentum, dampening, decay, nesterov in cases:
            keys = {"momentum": momentum, "dampening": dampening, "weight_decay": decay, "nesterov": nesterov}
            self.compare(ciuic("sgd", keys), peer(lambda p: torch.optim.SGD(p, lr=1e-2, **keys)))

    def test_lion(self):
        ours = ciuic("lion", {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1})
        theirs = peer(lambda p: Lion(p, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1))
        # Where moment and gradient cancel, a rounding decides a sign: 5000 elements x 100 steps meet it rarely.
        self.compare(ours, theirs, allowed=2)


if __name__ == "__main__":
    unittest.main()
