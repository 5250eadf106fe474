"""The house rules a reader relies on: import edges, and a wheel that equals the tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "reference": ROOT / "reference",
    "contracts": ROOT / "src" / "trueup" / "contracts",  # shared by oracle and kernels
    "oracle": ROOT / "oracle",
    "kernels": ROOT / "kernels",
    "gates": ROOT / "gates",
    "face": ROOT / "src" / "trueup",
}
# folder -> the folders of trueup it may import from, and the only outside packages where limited
EDGES = {
    "reference": {"reference"},
    "contracts": {"contracts"},
    "oracle": {"oracle", "reference", "contracts"},
    "kernels": {"kernels", "contracts"},
    "gates": {"gates"},
    "face": {"face", "oracle", "reference", "gates", "kernels", "contracts"},
}
# cuda: NVIDIA's bindings (cuda-core, cuda-bindings), with which torch tensors meet our kernels;
# triton comes with torch for CUDA.
OUTSIDE = {"reference": {"numpy"}, "contracts": set[str](), "kernels": {"torch", "cuda", "triton"}}


def imports(path: Path) -> list[tuple[str, int]]:
    """Every module a file imports, as absolute dotted names with the line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found.append((node.module or "", node.lineno))
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return found


def sources(folder: str) -> list[Path]:
    found = sorted(FOLDERS[folder].rglob("*.py"))
    if folder == "face":
        found = [path for path in found if not path.is_relative_to(FOLDERS["contracts"])]
    return found


def folder_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "trueup":
        return None
    if len(parts) > 1 and parts[1] in FOLDERS and parts[1] != "face":
        return parts[1]
    return "face"


@pytest.mark.parametrize("folder", FOLDERS)
def test_import_edges(folder: str) -> None:
    wrong = []
    for path in sources(folder):
        for module, line in imports(path):
            target = folder_of(module)
            if module == "trueup":  # `from trueup import x`: judged by the longer name
                continue
            if target is not None and target not in EDGES[folder]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
            top = module.split(".")[0]
            if (
                target is None
                and folder in OUTSIDE
                and top not in sys.stdlib_module_names | OUTSIDE[folder]
            ):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong


def test_nobody_imports_a_folder_by_its_bare_name() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/*.py")]
        + [p for folder in FOLDERS for p in sources(folder)]
        for module, line in imports(path)
        if module.split(".")[0] in ("oracle", "reference", "contracts", "kernels", "gates")
    ]
    assert not wrong


def test_the_edge_test_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import oracle\nfrom trueup.gates import judge\n")
    assert [module for module, _ in imports(bad)] == [
        "oracle",
        "trueup.gates",
        "trueup.gates.judge",
    ]
    assert folder_of("trueup.gates.judge") == "gates"


def test_the_wheel_holds_exactly_the_tree(tmp_path: Path) -> None:
    """Every code and data file of the packages, and no page about them, is installed."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "--wheel-dir",
            str(tmp_path),
            str(_copy(tmp_path)),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tree = set()
    for folder, path in FOLDERS.items():
        prefix = "trueup" if folder == "face" else f"trueup/{folder}"
        tree |= {
            f"{prefix}/{p.relative_to(path).as_posix()}"
            for p in path.rglob("*")
            if p.is_file() and "__pycache__" not in p.parts and p.suffix != ".md"
        }
    assert names == tree


def _copy(tmp_path: Path) -> Path:
    """Copy what the build needs: building in place would leave a build folder behind."""
    import shutil

    target = tmp_path / "tree"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("reference", "oracle", "kernels", "gates", "src"):
        shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target / name)
    return target


def test_every_dependency_is_pinned_and_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        re.split(r"==", line)[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        wanted += extra
    names = {re.split(r"[\[<>=!~ ]", item)[0].lower().replace("_", "-") for item in wanted}
    assert names - {"trueup"} <= pinned


def test_torch_is_pinned_to_one_version() -> None:
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().split()
