# SPDX-License-Identifier: MIT
"""ciuic against transformers over random models that take every path: logits, loss, every gradient, every choice.

Both sides are in fp32 and eager. What each may differ by, and why:
  logits     1e-5 x max(1, largest logit)      rounding of fp32 sums in another order, through up to 5 layers
  loss       1e-6 x max(1, loss)               a mean over 63 or more tokens, so errors of logits average out
  gradients  ||a - b|| <= 1e-4 ||b||           each parameter; two passes through the same layers
  routing    identical, but for choices that the reference makes by less than 1e-6: the rounding of a score in [0, 1]
             plus a bias of up to 12
Where a bound does not hold against fp32, the same model in fp64 decides: ciuic must keep the bound against fp64, or be
closer to it than the reference in fp32 is; and of a gradient that is zero in fp64 (the gate's, where one expert a token
has all the weight) nothing may be left but rounding, 1e-6 of all gradients together. How often that was needed is
printed with the largest errors seen.

Options: --models N, --first N, --seed N (the defaults are what the test runs), --verbose a line per model.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import warnings

import torch

import ciuic_runs
import random_models
import transformers_model as reference

LOGITS, LOSS, GRADIENTS, GAP, ZERO = 1e-5, 1e-6, 1e-4, 1e-6, 1e-6
ROWS, LENGTH, LONG = 3, 64, 4224
ROUTED_ROWS, ROUTED_LENGTH = 40, 256  # 10,240 tokens


class Largest:
    """The largest errors, as fractions of nothing: plain numbers; and what was counted."""

    def __init__(self):
        self.errors, self.counts = {}, {}

    def error(self, name, value, where):
        self.errors[name] = max(self.errors.get(name, (0.0, "")), (value, where))

    def count(self, name, number=1):
        self.counts[name] = self.counts.get(name, 0) + number

    def __str__(self):
        lines = [f"  {name:34} {value:.2e}  ({where})" for name, (value, where) in self.errors.items()]
        return "\n".join(lines + [f"  {name:34} {number}" for name, number in self.counts.items()])


class Sides:
    """One model on both sides."""

    def __init__(self, config, weights, tokens, folder):
        self.config, self.weights, self.tokens = config, weights, tokens
        ciuic_runs.write_model(config, weights, folder)
        self.folder = folder

    def ours(self, tokens, backward=True):
        names = ["logits", "gradients", "routing"] if backward else ["routing"]
        answer, *files = ciuic_runs.evaluate(self.folder, tokens, self.folder, names)
        return answer["loss"], *files

    def theirs(self, tokens, routing, dtype=torch.float32, backward=True):
        """logits, loss, gradients, Routers"""
        model = reference.build(self.config, self.weights, dtype)
        routers = reference.Routers(model.model.layers, self.config, routing)
        with reference.widen() if dtype == torch.float64 else torch.no_grad() if not backward else torch.enable_grad():
            if not backward:
                model.model(input_ids=tokens, use_cache=False)
                return None, None, None, routers
            logits = model(input_ids=tokens, use_cache=False).logits
            loss = reference.loss_of(logits, tokens)
            loss.backward()
        return logits.detach(), loss.item(), reference.gradients(model), routers


def relative(a, b):
    return ((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-30)).item()


def norm_of(gradients):
    return torch.stack([g.double().norm() for g in gradients.values()]).norm()


class Comparison:
    def __init__(self, verbose):
        self.largest, self.failures, self.verbose = Largest(), [], verbose

    def hold(self, holds, text):
        if not holds:
            self.failures.append(text)

    def routing(self, where, ours, routers):
        theirs = torch.stack(routers.chosen) if routers.chosen else ours
        self.hold(ours.shape == theirs.shape, f"{where}: routing has shape {ours.shape}, expected {theirs.shape}")
        self.largest.count("choices of experts for a token", ours.shape[0] * ours.shape[1])
        self.largest.count("of these otherwise", len(routers.gaps))
        for gap in routers.gaps:
            self.largest.error("otherwise, by a gap of", gap, where)
            self.hold(gap < GAP, f"{where}: another choice, where the reference's best is better by {gap:.2e}")
        self.hold(routers.order <= GAP, f"{where}: choices are not in order of their scores, by {routers.order:.2e}")

    def model(self, where, sides):
        tokens = sides.tokens
        loss, logits, gradients, routing = sides.ours(tokens)
        logits, experts = logits["logits"], routing["experts"]
        expected_logits, expected_loss, expected, routers = sides.theirs(tokens, experts)
        self.routing(where, experts, routers)
        errors = self.errors(where, (logits, loss, gradients), (expected_logits, expected_loss, expected))
        exceeded = [key for key, (error, bound) in errors.items() if not error <= bound]
        for key, (error, bound) in errors.items():
            if error > bound:
                continue  # below
            self.largest.error(key if key in ("logits", "loss") else "gradients", error, f"{where} {key}")
        if self.verbose:
            worst = max((k for k in errors if k not in ("logits", "loss")), key=lambda k: errors[k][0])
            print(f"{where}: logits {errors['logits'][0]:.1e}, loss {errors['loss'][0]:.1e}, "
                  f"gradients {errors[worst][0]:.1e} ({worst})", flush=True)
        if exceeded:
            self.decide(where, sides, experts, exceeded, (logits, loss, gradients),
                        (expected_logits, expected_loss, expected))

    def errors(self, where, ours, theirs):
        """{quantity: (error, bound)}"""
        self.hold(set(ours[2]) == set(theirs[2]), f"{where}: gradients of {set(ours[2]) ^ set(theirs[2])}")
        largest = max(1.0, theirs[0].abs().max().item())
        out = {"logits": ((ours[0].double() - theirs[0].double()).abs().max().item() / largest, LOGITS),
               "loss": (abs(ours[1] - theirs[1]) / max(1.0, theirs[1]), LOSS)}
        for name, gradient in theirs[2].items():
            out[name] = (relative(ours[2][name], gradient), GRADIENTS)
        return out

    def decide(self, where, sides, experts, exceeded, ours, theirs):
        """fp64 says who is off."""
        exact = sides.theirs(sides.tokens, experts, torch.float64)
        ours_off, theirs_off = self.errors(where, ours, exact[:3]), self.errors(where, theirs, exact[:3])
        for key in exceeded:
            error, bound = ours_off[key]
            if key in exact[2] and exact[2][key].norm() <= 1e-12 * norm_of(exact[2]):
                error = (ours[2][key].norm() / norm_of(exact[2])).item()
                self.largest.count("gradients that are zero")
                self.largest.error("of these, what is left, of all", error, f"{where} {key}")
                self.hold(error <= ZERO, f"{where} {key}: {error:.2e} of all gradients is left of one that is zero")
                continue
            self.largest.count("bounds decided by fp64")
            self.largest.error("  there, ciuic from fp64", error, f"{where} {key}")
            self.largest.error("  there, the reference from fp64", theirs_off[key][0], f"{where} {key}")
            self.hold(error <= bound or error <= theirs_off[key][0],
                      f"{where} {key}: {error:.2e} from fp64, expected at most {bound:.0e}; "
                      f"the reference in fp32 is {theirs_off[key][0]:.2e} away")

    def routed(self, where, sides, tokens):
        """Routing alone, of many tokens."""
        _, routing = sides.ours(tokens, backward=False)
        self.routing(where, routing["experts"], sides.theirs(tokens, routing["experts"], backward=False)[3])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=20260716)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of shared experts of no width, initialised
    comparison = Comparison(options.verbose)
    for number, config in list(enumerate(random_models.draws(options.models, options.seed)))[options.first:]:
        where = f"model {number} ({config['topk_method']})"
        deviation = random_models.DEVIATIONS[number % 3]
        is_long = config["max_position_embeddings"] > LONG
        shape = (1, LONG) if is_long else (ROWS, LENGTH)
        tokens = torch.from_numpy(random_models.tokens("tokens", shape, config["vocab_size"], number))
        with tempfile.TemporaryDirectory() as folder:
            sides = Sides(config, random_models.weights(config, number, deviation), tokens, pathlib.Path(folder))
            try:
                comparison.model(where, sides)
                if not is_long:
                    many = random_models.tokens("many tokens", (ROUTED_ROWS, ROUTED_LENGTH), config["vocab_size"], number)
                    comparison.routed(where, sides, torch.from_numpy(many))
            except AssertionError as error:
                comparison.hold(False, f"{where}: {error} {json.dumps(config)}")
    print(f"{options.models - options.first} models; the largest errors:\n{comparison.largest}")
    for failure in comparison.failures:
        print("FAILED", failure)
    sys.exit(1 if comparison.failures else 0)


if __name__ == "__main__":
    main()
