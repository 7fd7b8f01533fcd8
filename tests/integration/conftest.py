# SPDX-License-Identifier: MIT
"""What all black-box tests share: a workspace with a small text and run file, the command, and its traces.

The tests know the contract (design: configuration and command) and the files that a run leaves; nothing of the program's inside.
Every process that a test starts works in the test's own folder, so that one that is left over is found by its cwd.
"""
import atexit
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
CIUIC = Path(os.environ.get("CIUIC", SOURCE / "build/bin/ciuic")).absolute()
HARD_TIMEOUT_S = 60
BAD_INPUT_S = 5.0
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")  # synced files cost nothing there
# What is found out about plugins is kept; the tests keep it apart from the person's own.
for _variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
    _folder = tempfile.mkdtemp(prefix="ciuic-test-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    os.environ[_variable] = _folder
LAUNCHER_VARIABLES = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CIUIC_PLUGIN_PATH",
)

TINY = {
    "run.name": "small",
    "run.output": "out",
    "run.seed": 7,
    "run.steps": 12,
    "run.ranks": 1,
    "run.threads": 1,
    "model.preset": "tiny",
    "model.hidden_size": 32,
    "model.intermediate_size": 64,
    "model.moe_intermediate_size": 16,
    "model.num_hidden_layers": 2,
    "model.num_attention_heads": 2,
    "model.num_key_value_heads": 2,
    "model.n_routed_experts": 4,
    "model.q_lora_rank": 16,
    "model.kv_lora_rank": 16,
    "model.qk_nope_head_dim": 8,
    "model.qk_rope_head_dim": 8,
    "model.v_head_dim": 8,
    "data.train": ["text.txt"],
    "data.validation_fraction": 0.05,
    "data.sequence_tokens": 32,
    "validation.every": "5 steps",
    "validation.sequences": 8,
    "batch_scheduler.plugin": "fixed",
    "batch_scheduler.fixed.sequences": 8,
    "batch_scheduler.fixed.micro_sequences": 2,
    "communicator.plugin": "gloo",
    "communicator.timeout": "20s",
    "sharding.plugin": "ddp",
    "optimizer.plugin": "adamw",
    "precision.plugin": "fp32",
    "schedule.learning_rate": 3e-3,
    "checkpoint.plugin": "sharded",
    "checkpoint.every": "5 steps",
    "checkpoint.keep": 3,
    "profiler.plugins": ["monitor"],
}


def small_text(words=6000, seed=11):
    """UTF-8 text that a small model learns quickly; the same on every machine."""
    choose = random.Random(seed)
    lexicon = ["light", "and", "darkness", "the", "waters", "über", "said", "earth", "day", "naïve", "firmament", "of"]
    return " ".join(choose.choice(lexicon) for _ in range(words)) + "\n"


def toml_value(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def run_file_text(changes):
    """TINY with changes ({"run.steps": 5}; None takes a key out), as TOML with one table per prefix."""
    tables = {}
    for key, value in {**TINY, **changes}.items():
        table, name = key.rsplit(".", 1)
        if value is not None:
            tables.setdefault(table, []).append(f"{name} = {toml_value(value)}")
    return "\n\n".join(f"[{table}]\n" + "\n".join(lines) for table, lines in tables.items()) + "\n"


def clean_environment(extra=None):
    environment = {k: v for k, v in os.environ.items() if k not in LAUNCHER_VARIABLES}
    environment.update({k: str(v) for k, v in (extra or {}).items()})
    return environment


def processes_in(folder):
    """Pids of living processes that work in this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            cwd = os.readlink(entry / "cwd")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and (cwd == str(folder) or cwd.startswith(f"{folder}/")):
            found.append(int(entry.name))
    return found


def rank_pids(folder):
    """{rank: pid} of the ranks at work in this folder."""
    ranks = {}
    for pid in processes_in(folder):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        numbers = [e[5:] for e in environment if e.startswith(b"RANK=")]
        if command[0].endswith(b"ciuic-worker") and numbers:
            ranks[int(numbers[0])] = pid
    return ranks


def wait_until(condition, seconds, what):
    """The first true value of condition(); fails after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.003)
    pytest.fail(f"after {seconds} s: not {what}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@dataclass
class Result:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def last_line(self):
        lines = self.err.rstrip("\n").splitlines()
        return lines[-1] if lines else ""

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.2f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Process:
    """A ciuic at work in the background; its output goes to files, so it never waits for a reader."""

    def __init__(self, workspace, arguments, env):
        self.folder = workspace.path
        self._files = [workspace.path / f".{name}-{workspace.count()}" for name in ("stdout", "stderr")]
        self._begin = time.monotonic()
        with open(self._files[0], "wb") as out, open(self._files[1], "wb") as err:
            self._process = subprocess.Popen(
                [str(a) for a in arguments], cwd=workspace.path, env=clean_environment(env), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True)

    @property
    def pid(self):
        return self._process.pid

    def is_running(self):
        return self._process.poll() is None

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=HARD_TIMEOUT_S):
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(f"still running after {timeout} s: {self._process.args}\n{self._texts()}")
        return Result(code, *self._texts(), time.monotonic() - self._begin)

    def kill(self):
        if self.is_running():
            self._process.kill()
            self._process.wait()

    def _texts(self):
        return [f.read_bytes().decode("utf-8", "replace") for f in self._files]


class Metrics:
    """A metrics.jsonl: every line parses, the later line of a step counts."""

    def __init__(self, path):
        text = Path(path).read_text()
        assert text.endswith("\n"), f"the last line is torn: {text[-200:]!r}"
        self.lines = [json.loads(line) for line in text.splitlines()]
        self.texts = [json.loads(line, parse_float=str, parse_int=str) for line in text.splitlines()]

    def of(self, kind):
        return [line for line in self.lines if line["type"] == kind]

    @property
    def steps(self):
        return {line["step"]: line for line in self.of("step")}

    @property
    def validations(self):
        return {line["step"]: line["loss"] for line in self.of("validation")}

    def column(self, name):
        """{step: the number as it is written}, so that a comparison is of bytes."""
        return {int(t["step"]): t[name] for t in self.texts if t["type"] == "step"}

    def columns(self):
        return {name: self.column(name) for name in ("loss", "grad_norm")}

    @property
    def losses(self):
        return [line["loss"] for _, line in sorted(self.steps.items())]


class Workspace:
    """A folder with text.txt and run.toml, in which ciuic runs."""

    def __init__(self, path, ciuic=CIUIC):
        self.path = Path(path)
        self.ciuic = ciuic
        self._count = 0
        self._processes = []
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "text.txt").write_text(small_text(), encoding="utf-8")

    def count(self):
        self._count += 1
        return self._count

    def __truediv__(self, name):
        return self.path / name

    def config(self, changes=None, file="run.toml"):
        (self.path / file).write_text(run_file_text(changes or {}), encoding="utf-8")
        return file

    def start(self, *arguments, env=None):
        process = Process(self, [self.ciuic, *arguments], env)
        self._processes.append(process)
        return process

    def run(self, *arguments, env=None, timeout=HARD_TIMEOUT_S):
        """To the end; nothing of it may be left."""
        others = set(processes_in(self.path))
        result = self.start(*arguments, env=env).wait(timeout)
        left = set(processes_in(self.path)) - others
        assert not left, f"left over: {left}\n{result}"
        return result

    def train(self, *arguments, changes=None, env=None, code=0, timeout=HARD_TIMEOUT_S):
        """Writes run.toml where changes are given, trains, expects the exit code."""
        if changes is not None or not (self / "run.toml").exists():
            self.config(changes)
        result = self.run("train", "run.toml", *arguments, env=env, timeout=timeout)
        assert result.code == code, str(result)
        return result

    def metrics(self, output="out"):
        return Metrics(self.path / output / "metrics.jsonl")

    def written_steps(self, output="out"):
        """Steps in metrics.jsonl so far, while it is being written."""
        try:
            text = (self.path / output / "metrics.jsonl").read_text()
        except OSError:
            return []
        return [json.loads(line)["step"] for line in text.splitlines(keepends=True)
                if line.endswith("\n") and '"type": "step"' in line]

    def wait_for_step(self, step, process, output="out", seconds=30):
        """Until a line after this call says step or more."""
        begin = len(self.written_steps(output))

        def reached():
            assert process.is_running(), f"ended before step {step}: {process.wait()}"
            return [s for s in self.written_steps(output)[begin:] if s >= step]

        return wait_until(reached, seconds, f"at step {step}")[0]

    def checkpoints(self, output="out"):
        return sorted(int(p.name[5:]) for p in (self.path / output / "checkpoints").glob("step-*")
                      if p.name[5:].isdigit())

    def checkpoint(self, step, output="out"):
        return self.path / output / "checkpoints" / f"step-{step:08d}"

    def processes(self):
        return processes_in(self.path)

    def ranks(self, expected, seconds=20):
        """{rank: pid} once so many ranks are there."""
        return wait_until(lambda: (r := rank_pids(self.path)) and len(r) == expected and r, seconds,
                          f"{expected} ranks at work")

    def wait_for_silence(self, seconds):
        wait_until(lambda: not self.processes(), seconds, "without processes")

    def close(self):
        for process in self._processes:
            process.kill()
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


@pytest.fixture
def work(tmp_path):
    workspace = Workspace(tmp_path)
    yield workspace
    was_running = any(p.is_running() for p in workspace._processes)
    left = workspace.close()
    assert was_running or not left, f"processes left over: {left}"
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A workspace that the tests of a file share; what lies in it is read only."""
    workspace = Workspace(tmp_path_factory.mktemp("shared"))
    yield workspace
    left = workspace.close()
    shutil.rmtree(workspace.path, ignore_errors=True)
    assert not left


def assert_fault(result, code, *fragments, remedy=None, seconds=BAD_INPUT_S):
    """The exit code and the one last line that the contract asks for. Fragments stand anywhere on stderr."""
    assert result.code == code, str(result)
    errors = [line for line in result.err.splitlines() if line.startswith("ciuic: error: ")]
    assert len(errors) == 1, f"expected one error line\n{result}"
    assert result.last_line == errors[0], f"the error is not the last line\n{result}"
    for fragment in fragments:
        assert str(fragment) in result.err, f"{fragment!r} is not said\n{result}"
    if remedy is not None:
        assert remedy in result.last_line, f"no remedy with {remedy!r}\n{result}"
    # The bound holds for a machine that has time; where others use it too, for our share of it.
    crowd = max(1.0, os.getloadavg()[0] / os.cpu_count())
    assert result.seconds < seconds * crowd, f"took too long\n{result}"


def assert_no_run(workspace, output="out"):
    """Refused before anything was written."""
    assert not (workspace / output).exists(), sorted(str(p) for p in (workspace / output).rglob("*"))


def assert_no_partial_files(folder):
    rests = [p for p in Path(folder).rglob("*") if p.name.endswith((".partial", ".removed", ".tmp"))]
    assert not rests, rests


def flip_byte(path, offset=-1):
    data = bytearray(Path(path).read_bytes())
    data[offset] ^= 0x40
    Path(path).write_bytes(data)
