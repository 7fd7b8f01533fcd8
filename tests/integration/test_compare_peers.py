# SPDX-License-Identifier: MIT
"""tools/compare_peers without its peers: rows, verdicts, and what fails is said in its row."""
import os
import subprocess
import sys

import pytest

from conftest import SOURCE

sys.path.insert(0, str(SOURCE / "tools/lib"))
from peers import rows, runs, table  # noqa: E402


def outcome(row, ours, peer, problem=""):
    return table.outcome("row", row, ours, peer, problem)


def test_verdicts():
    faster = rows.Row("tokens/s", "tokens_per_second", 1.3, "eager")
    assert outcome(faster, [130, 140, 90], [100, 90, 110])["verdict"] == "ok"  # 130 / 100
    assert outcome(faster, [120, 121, 122], [100, 100, 100])["verdict"] == "missed"
    smaller = rows.Row("peak memory", "peak_rss_bytes", 0.5, "eager", at_most=True)
    assert outcome(smaller, [40], [100])["verdict"] == "ok"
    assert outcome(smaller, [60], [100])["verdict"] == "missed"
    sooner = rows.Row("start", "startup_seconds", 5, "eager", is_inverse=True)
    assert outcome(sooner, [1.0], [6.0])["ratio"] == pytest.approx(6)
    alone = rows.Row("model FLOPs", "fraction_of_gemm_rate", 0.75)
    assert outcome(alone, [0.8], [])["verdict"] == "ok"


def test_a_failed_peer_is_said_in_its_row():
    row = rows.Row("tokens/s", "tokens_per_second", 1.3, "deepspeed")
    failed = outcome(row, [100], [], "deepspeed failed: not done after 1 s")
    assert failed["verdict"] == "deepspeed failed: not done after 1 s" and failed["ratio"] is None
    assert "deepspeed failed" in table.text([failed])
    once = outcome(row, [100, 100], [50], "deepspeed failed: exit 9")
    assert once["ratio"] == 2 and once["verdict"].endswith("; one turn: deepspeed failed: exit 9"), once


def test_a_child_has_a_time_limit_and_its_last_words():
    with pytest.raises(runs.RunFailed, match="not done after 0.2 s"):
        runs.run([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    with pytest.raises(runs.RunFailed, match="exit 3: it broke"):
        runs.run([sys.executable, "-c", "import sys; print('it broke', file=sys.stderr); sys.exit(3)"], 60)


@pytest.mark.parametrize("arguments", [("--turns", "0"), ("--turns", "-1"), ("--steps", "0"), ("--only", "[")])
def test_bad_arguments_are_refused(arguments):
    result = subprocess.run([SOURCE / "tools/compare_peers", "--list", *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and f"argument {arguments[0]}" in result.stderr, result


def test_rows_are_listed_and_chosen():
    def listed(*arguments):
        return subprocess.run([SOURCE / "tools/compare_peers", "--list", *arguments], text=True, timeout=60,
                              capture_output=True, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
                              ).stdout.splitlines()
    everything = listed()
    assert len(everything) == len(set(everything)) >= 40
    assert [r for r in listed("--only", "zero3") if "zero3" not in r] == [] != listed("--only", "zero3")


def test_every_row_has_its_peer():
    for match in rows.matches():
        assert match.rows and all(not row.peer or row.peer in match.peers for row in match.rows), match
