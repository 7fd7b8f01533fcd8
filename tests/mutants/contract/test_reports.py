# SPDX-License-Identifier: MIT
"""What programs read of ciuic-check: whole, whatever the plugin prints, however it is refused, or the clear word that it is not."""
import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree

CHECK = os.environ["CIUIC_CHECK"]
MUTANTS = os.environ["CIUIC_MUTANTS"]


def check(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([CHECK, *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=100, check=False)


def library(name):
    return f"{MUTANTS}/lib{name}.so"


def test_json_is_json_when_a_constructor_prints():
    result = check(library("prints_when_loaded"), "--json", "--level", "1")
    report = json.loads(result.stdout)
    failed = {t["id"]: t["message"] for t in report["tests"] if t["result"] == "failed"}
    assert result.returncode == 1 and list(failed) == ["any.load.changes_nothing"], result
    assert "hello from a constructor" in failed["any.load.changes_nothing"]


def test_a_file_that_cannot_be_loaded_is_in_both_reports(tmp_path):
    result = check("--json", "--junit", tmp_path / "report.xml", library("crashes_when_loaded"))
    assert result.returncode == 3
    assert f"{library('crashes_when_loaded')} is no plugin that can be loaded" in result.stderr
    report = json.loads(result.stdout)
    assert report["file"] == library("crashes_when_loaded") and "crashed" in report["error"]
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert suites.get("errors") == "1" and "SIGABRT" in suites.find("testsuite/testcase/error").get("message")


def test_usage_leaves_an_earlier_report_alone(tmp_path):
    (tmp_path / "report.xml").write_text("earlier")
    assert check(library("plain"), "--junit", tmp_path / "report.xml", "--test", "nothing").returncode == 2
    assert (tmp_path / "report.xml").read_text() == "earlier"


def test_reports_onto_a_full_disk_are_6():
    with open("/dev/full", "w") as full:
        for arguments in (["--list"], ["--help"], [library("plain"), "--level", "0"], [library("plain"), "--level", "0", "--json"]):
            result = check(*arguments, stdout=full)
            assert result.returncode == 6 and "stdout cannot be written" in result.stderr, result
        failed = check(library("prints_when_loaded"), "--level", "1", stdout=full)
        assert failed.returncode == 1, "a failed test says more than a lost report"
    result = check(library("plain"), "--level", "0", "--junit", "/dev/full")
    assert result.returncode == 6 and "/dev/full cannot be written" in result.stderr, result
