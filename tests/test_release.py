"""What strangers install: one version everywhere, and every file in the archives."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import prudent

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "prudent"
BESIDE = ("README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "SECURITY.md")


def built(source, target, folder):
    """Build an archive of a source tree, and return its path."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The wheel and the source archive, built from a copy of the tree."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(
        ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in (*BESIDE, "pyproject.toml"):
        shutil.copy(ROOT / name, tree)
    return (
        built(tree, "wheel", tmp_path_factory.mktemp("wheel")),
        built(tree, "sdist", tmp_path_factory.mktemp("sdist")),
    )


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_of_the_package():
    return {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }


def test_one_version_everywhere():
    version = prudent.__version__
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [version]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == version
    with (ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)
    assert project["project"]["dynamic"] == ["version", "readme"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/prudent/_version.py"
    assert "version = release = __version__" in (ROOT / "docs" / "conf.py").read_text()


def test_the_command_says_the_version():
    said = subprocess.check_output(
        [sys.executable, "-m", "prudent", "--version"], text=True
    )
    assert said.splitlines()[0] == f"prudent {prudent.__version__}"


def test_the_citation_has_what_the_format_requires():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)


def test_the_wheel_holds_every_file_of_the_package(archives):
    members = contents(archives[0])
    packed = {name for name in members if name.startswith("prudent/")}
    assert packed == files_of_the_package()
    endings = {Path(name).suffix for name in packed}
    assert {".typed", ".gz", ".html", ".css", ".js", ".mplstyle"} <= endings
    others = {name.partition("/")[0] for name in members} - {"prudent"}
    assert others == {f"prudent-{prudent.__version__}.dist-info"}


def test_the_metadata_of_the_wheel(archives):
    members = contents(archives[0])
    (name,) = (n for n in members if n.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(members[name])
    assert metadata["Version"] == prudent.__version__
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Requires-Python"] == ">=3.11"
    # A page of a registry has no files beside it.
    links = re.findall(r"\]\(([^)#]+)\)", metadata.get_payload())
    site = "https://prudent.readthedocs.io/en/latest/"
    assert f"{site}_images/report.png" in links
    assert f"{site}getting_started.html" in links
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_source_archive_builds_the_same_wheel(archives, tmp_path):
    wheel, source = archives
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert all((tree / name).is_file() for name in BESIDE)
    again = built(tree, "wheel", tmp_path / "again")
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def test_the_wheel_works_without_the_tree(archives, tmp_path):
    with zipfile.ZipFile(archives[0]) as archive:
        archive.extractall(tmp_path / "site")
    program = (
        "import prudent; from prudent.cli.app import main; import sys; "
        "print(prudent.__file__); sys.argv[1:] = ['compare', 'iris', '--methods', "
        "'majority,lda', '--no-best', '--report', 'report.html']; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(str(tmp_path / "site"))
    assert (tmp_path / "report.html").stat().st_size > 10_000
