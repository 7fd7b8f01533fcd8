# SPDX-License-Identifier: MIT
"""Rows with their outcome, as one table and as JSON."""
from statistics import median

COLUMNS = ("what", "ours", "peer", "ratio", "bar", "")
DIGITS = {"tokens_per_second": (1, "{:,.0f}"), "peak_rss_bytes": (1e6, "{:,.0f} MB"),
          "startup_seconds": (1, "{:.2f} s"), "fraction_of_gemm_rate": (1, "{:.3f}"),
          "seconds": (1e-3, "{:.3f} ms")}


def shown(figure, value):
    if value is None:
        return "-"
    scale, form = DIGITS[figure]
    return form.format(value / scale)


def verdict(value, bar, at_most):
    return "ok" if (value <= bar if at_most else value >= bar) else "missed"


def outcome(title, row, ours, peer, problem=""):
    """`ours`, `peer`: the row's figure in each turn that ended well; a problem of another turn is told beside the verdict."""
    result = {"what": title, "figure": row.figure, "bar": row.bar, "at_most": row.at_most,
              "ours": median(ours) if ours else None, "peer": median(peer) if peer else None,
              "ours_turns": ours, "peer_turns": peer, "ratio": None}
    if not ours or (row.peer and not peer):
        return {**result, "verdict": problem or "no figures"}
    if row.peer:
        ratio = result["peer"] / result["ours"] if row.is_inverse else result["ours"] / result["peer"]
    else:
        ratio = result["ours"]
    return {**result, "ratio": ratio, "verdict": verdict(ratio, row.bar, row.at_most) + (f"; one turn: {problem}" if problem else "")}


def text(outcomes):
    lines = [COLUMNS]
    for o in outcomes:
        bar = ("<= " if o["at_most"] else ">= ") + f"{o['bar']:g}"
        ratio = "-" if o["ratio"] is None else f"{o['ratio']:.2f}"
        lines.append((o["what"], shown(o["figure"], o["ours"]), shown(o["figure"], o["peer"]),
                      ratio, bar, o["verdict"]))
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(w) if i in (0, 5) else cell.rjust(w)
                               for i, (cell, w) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)
