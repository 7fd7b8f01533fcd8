# SPDX-License-Identifier: MIT
"""What the pages claim, tried: configurations are checked, plugins built and loaded, commands and links looked up, tables
compared with what the command says. Needs a built tree: CIUIC_BUILD_DIR, or build/."""
import json
import os
import re
import subprocess
import tomllib

import conformance_tables
import pytest

from pages import PAGES, ROOT, anchors, blocks, command_lines, links, names_in, table

BUILD = os.environ.get("CIUIC_BUILD_DIR", str(ROOT / "build"))
CIUIC = BUILD + "/bin/ciuic"
COMPILER = os.environ.get("CXX", "g++")
METRICS = ROOT / "docs" / "metrics.md"
# Tables that a run file must have; a page that shows a part of a file gets the others from here.
REQUIRED = {"run": "[run]\nsteps = 1\n", "model": '[model]\npreset = "tiny"\n', "data": '[data]\ntrain = ["text.txt"]\n'}


def run(*command, cwd=ROOT, code=0):
    environment = {k: v for k, v in os.environ.items() if k not in ("CIUIC_PLUGIN_PATH", "RANK", "WORLD_SIZE")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def text_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "text.txt"
    path.write_text("In the beginning was the Word. " * 600)
    return path


@pytest.fixture(scope="session")
def plugins(tmp_path_factory):
    """Every C++ block that is a plugin, compiled as the pages say: file by name."""
    folder = tmp_path_factory.mktemp("plugins")
    built = {}
    for block in blocks("cpp"):
        if "CIUIC_PLUGINS(" not in block.text:
            continue
        name = re.search(r'\bname = "(\w+)"', block.text)[1]
        source = folder / f"{name}.cpp"
        source.write_text(block.text)
        library = folder / f"lib{name}.so"
        run(COMPILER, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden",
            "-I", str(ROOT / "sdk/include"), str(source), "-o", str(library))
        built[name] = library
    return built


def test_plugin_blocks_load(plugins):
    assert len(plugins) >= 2
    for name, library in plugins.items():
        assert f" {name} " in run(CIUIC, "plugin", "inspect", str(library)).splitlines()[0]


@pytest.mark.parametrize("block", [b for b in blocks("cpp") if "CIUIC_PLUGINS(" in b.text], ids=str)
def test_plugin_blocks_are_short(block):
    """The README says how many lines its plugin has."""
    said = re.search(r"A plugin in (\d+) lines", block.page.read_text())
    assert said is None or len(block.text.splitlines()) <= int(said[1])


@pytest.mark.parametrize("block", blocks("c"), ids=str)
def test_c_blocks_compile(block, tmp_path):
    source = tmp_path / "block.c"
    source.write_text(block.text)
    run("gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-fsyntax-only", "-I", str(ROOT / "sdk/include"), str(source))


@pytest.mark.parametrize("block", blocks("cmake"), ids=str)
def test_cmake_blocks_build_the_plugin_beside_them(block, plugins, tmp_path):
    """A project of its own, outside the tree."""
    (tmp_path / "CMakeLists.txt").write_text(block.text)
    name = re.search(r"NAME (\w+)", block.text)[1]
    (tmp_path / f"{name}.cpp").write_text(plugins[name].with_suffix(".cpp").with_name(f"{name}.cpp").read_text())
    run("cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={BUILD}", cwd=tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    library = tmp_path / "build" / "plugins" / f"lib{name}.so"
    assert f" {name} " in run(CIUIC, "plugin", "inspect", str(library)).splitlines()[0]
    exported = run("nm", "-D", "--defined-only", "--format=posix", str(library)).split("\n")
    assert [line.split()[0] for line in exported if line] == ["ciuic_plugin_query"]
    run(CIUIC, "plugin", "check", str(library))


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml_blocks_are_accepted(block, plugins, text_file, tmp_path):
    given = tomllib.loads(block.text)
    file = tmp_path / "run.toml"
    file.write_text(block.text + "".join(part for name, part in REQUIRED.items() if name not in given))
    folders = [BUILD + "/plugins", str(next(iter(plugins.values())).parent)]
    run(CIUIC, "config", "check", str(file), "--set", f"data.train={json.dumps([str(text_file)])}",
        "--set", f"plugins.path={json.dumps(folders)}")


def help_of(*words):
    return run(*words, "--help")


@pytest.mark.parametrize("where, words", command_lines(), ids=lambda v: v if isinstance(v, str) else "_".join(v[:3]))
def test_command_lines_exist(where, words):
    options = [w.split("=")[0] for w in words if re.match(r"--[a-z]", w)]
    if words[0].startswith("tools/"):
        assert os.access(ROOT / words[0], os.X_OK), where
        usage = (ROOT / words[0]).read_text() if words[0] != "tools/quickstart" else help_of(CIUIC, "train")
    elif len(words) > 1 and not words[1].startswith("-"):
        assert re.search(rf"^  {words[1]} ", help_of(CIUIC), re.MULTILINE), f"{where}: no command {words[1]}"
        usage = help_of(CIUIC, words[1])
        if len(words) > 2 and words[1] in ("config", "plugin", "checkpoint"):
            for action in words[2].split("|"):
                assert re.search(rf"\b{action}\b", usage.split("Options:")[0]), f"{where}: no {words[1]} {action}"
            if words[1] == "plugin":  # each action has a page of its own
                usage = "".join(help_of(CIUIC, "plugin", action) for action in words[2].split("|"))
    else:
        usage = help_of(CIUIC) + " --help"
    for option in options:
        assert re.search(rf"{option}\b", usage), f"{where}: {words[:2]} has no {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_are_plain_ascii(page):
    assert page.read_text().isascii()


def test_paths_in_backquotes_exist():
    """Paths that begin with a folder of the tree; `<...>` and `*` stand for something."""
    for page in PAGES:
        for path in re.findall(r"`((?:core|plugins|sdk|tools|tests|configs|docs|cmake)/[\w./-]+)`", page.read_text()):
            assert (ROOT / path).exists(), f"{page.relative_to(ROOT)}: {path}"


def test_the_reference_is_current():
    """To renew it: the text between the markers is the output of the command in the first."""
    text = (ROOT / "docs/configuration.md").read_text()
    shown = re.search(r"<!-- begin: ciuic (.*?) -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert shown[2] == run(CIUIC, *shown[1].split())


def listed_plugins():
    lines = run(CIUIC, "plugin", "list", "--path", BUILD + "/plugins").splitlines()
    assert not [line for line in lines if line.startswith("refused")]
    return {tuple(line.split()[:2]) for line in lines[1:]}


def test_the_status_table_lists_what_exists():
    rows = table(ROOT / "README.md", "kind")
    existing = {(row[0], name) for row in rows for name in names_in(row[2])}
    planned = {(row[0], name) for row in rows for name in names_in(row[3])}
    assert existing == listed_plugins()
    assert not existing & planned


def test_every_kind_is_in_the_tables():
    kinds = {row[0] for row in table(ROOT / "README.md", "kind")}
    assert kinds == {row[0] for row in table(ROOT / "docs/writing_a_plugin.md", "kind")}
    assert len(kinds) == 7


def test_exit_codes_are_those_of_the_source():
    enum = re.search(r"enum class ExitCode.*?\{(.*?)\};", (ROOT / "core/log/failure.h").read_text(), re.DOTALL)[1]
    codes = set(re.findall(r"= (\d+),", enum)) | {"130", "143"}
    for page in (ROOT / "README.md", METRICS):
        assert {code for row in table(page, "exit code") for code in row[0].split(", ")} == codes, page


def test_planned_commands_are_refused_by_name():
    readme = (ROOT / "README.md").read_text()
    for name in names_in(re.search(r"^- The commands (.*?)\.$", readme, re.MULTILINE)[1]):
        run(CIUIC, name, code=2)


def documented_fields():
    """By type of line. The second table of steps is the monitor's."""
    fields = {}
    kind = None
    for line in METRICS.read_text().splitlines():
        if match := re.match(r'### type = "(\w+)"', line):
            kind = match[1]
        elif line.startswith("## "):
            kind = None
        elif kind and (match := re.match(r"\| `(\w+)` \|", line)):
            fields.setdefault(kind, set()).add(match[1])
    return fields


def test_metrics_have_the_documented_fields(text_file, tmp_path):
    file = tmp_path / "run.toml"
    weights = ["balance_loss_weight", "device_balance_loss_weight", "communication_balance_loss_weight",
               "router_z_loss_weight", "mtp_loss_weight", "router_noise", "expert_bias_rate", "gradient_clip_norm"]
    schedules = "\n".join(f'{name} = [{{ until = "end", to = 0.1, shape = "linear" }}]' for name in weights)
    file.write_text(f"""
[run]
steps = 2
output = "{tmp_path}/out"
[plugins]
path = ["{BUILD}/plugins"]
[model]
preset = "tiny"
num_hidden_layers = 2
num_nextn_predict_layers = 1
[data]
train = ["{text_file}"]
sequence_tokens = 32
[optimizer]
gradient_norms = ["*norm*"]
[batch_scheduler]
plugin = "ramp"
[batch_scheduler.ramp]
sequences = 2
ramp = ["4 from 1 step"]
micro_sequences = 2
[schedule]
{schedules}
[communicator]
plugin = "local"
[profiler]
plugins = ["monitor"]
""")
    run(CIUIC, "train", str(file), "--quiet")
    seen = {}
    for line in (tmp_path / "out/metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        seen.setdefault(record["type"], set()).update(record)
    assert seen == documented_fields()


def test_the_kit_knows_the_features_that_are_listed():
    source = (ROOT / "sdk/testing/conformance/static/descriptor_tests.cpp").read_text()
    known = re.findall(r'"(\w+:\w+)"', source.split("kKnownFeatures{")[1].split("};")[0])
    listed = re.findall(r"`(\w+:\w+)`", conformance_tables.features_table())
    assert sorted(known) == sorted(listed)


def test_conformance_tables_are_what_is_built():
    """python3 tests/docs/conformance_tables.py writes them."""
    page = conformance_tables.PAGE.read_text()
    assert page == conformance_tables.with_tables(page)


def test_enough_mutants_of_every_kind():
    kinds = {"communicator", "sharding", "optimizer", "precision", "batch_scheduler", "checkpoint", "profiler"}
    caught = [test.split(".")[0] for _, _, test, _ in conformance_tables.rows("mutants.txt")]
    assert len(caught) >= 36
    for kind in kinds:
        assert caught.count(kind) >= 3, kind
    assert len(conformance_tables.rows("unusual.txt")) >= 10
