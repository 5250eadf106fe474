"""The source gates: every kind has an example that passes and one that fails, in each language."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.gates.catalogue.kinds import Kind, families
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Finding, Verdict
from trueup.gates.source.config import Config, load_config, matches
from trueup.gates.source.judge import lint

KINDS = families()["source"]
IDS = {kind.name: kind.id for kind in KINDS}


def laid_out(text: str, folder: Path) -> Path:
    for part in text.split("== ")[1:]:
        name, _, rest = part.partition(" ==\n")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(rest)
    return folder


def judged(text: str, folder: Path) -> Verdict:
    laid_out(text, folder)
    settings = folder / "lint.toml"
    config = load_config(settings) if settings.exists() else Config(folder.resolve())
    return lint([str(folder)], config)


def found(text: str, folder: Path, name: str | None = None) -> list[Finding]:
    verdict = judged(text, folder)
    return [one for one in verdict.findings if name is None or one.rule == IDS[name]]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.id}-{kind.name}")
def test_examples_of_the_catalogue_are_true(kind: Kind, tmp_path: Path) -> None:
    good, bad = tmp_path / "passes", tmp_path / "fails"
    assert [f"{f.rule} {f.got}" for f in found(kind.passes, good)] == []
    assert kind.id in {finding.rule for finding in found(kind.fails, bad)}


def places(text: str, folder: Path, name: str) -> list[str]:
    return [f"{Path(f.artifact).name}:{f.where}" for f in found(text, folder, name)]


CUDA = "== k.cu ==\n{}\n"
RUST = "== k.rs ==\n{}\n"
PYTHON = "== k.py ==\n{}\n"
HOT = "== lint.toml ==\n[copies]\npaths = ['k.py']\n"
ABSTRACT = "class A:\n    @abstractmethod\n    def f(self):\n        raise NotImplementedError"
IFDEFS = "#ifdef SLOW\nint x;\n#endif\n#ifdef FAST\n#endif\n#ifdef __CUDACC__\n#endif"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("void f(int* p) { atomicCAS(p, 1, 2); }", "1:18", id="call"),
        pytest.param("void f(float* p) { atomicAdd_system(p, 1.f); }", "1:20", id="system"),
        pytest.param("void f(float* p) { atomicAdd<float>(p, 1.f); }", "1:20", id="template"),
        pytest.param("void f(float* p) { ::atomicMax (p, 1); }", "1:20", id="global-scope"),
        pytest.param("#define ADD(p) atomicAdd((p), 1)\n", "1:16", id="macro"),
        pytest.param("#define ADD(p) \\\n  atomicAdd((p), 1)\n", "2:3", id="macro-lines"),
        pytest.param("void f() { cuda::atomic<int> a; }", "1:12", id="type"),
        pytest.param("void f(int& i) { cuda::std::atomic_ref<int> a(i); }", "1:18", id="ref"),
        pytest.param('void f() { asm volatile("red.global.add.f32 [%0];"); }', "1:12", id="asm"),
        pytest.param("void f(int* p) { __nv_atomic_add(p, 1, 5, 3); }", "1:18", id="builtin"),
    ],
)  # fmt: skip
def test_every_form_of_an_atomic_is_found(text: str, place: str, tmp_path: Path) -> None:
    assert places(CUDA.format(text), tmp_path, "atomic_used") == [f"k.cu:{place}"]


@pytest.mark.parametrize(
    "text",
    [
        "void f(int* p) { my_atomicAdd(p, 1); }",
        "// atomicAdd(p, 1)",
        "/* atomicAdd(p, 1); */",
        'const char* s = "atomicAdd(p, 1)";',
        "int atomicAdder = 1;",
        "#define NOTE 1 // atomicAdd(p, 1)\n",
        'void f() { asm("mov.u32 %0, 1; // no atom" : "=r"(x)); }',
        "struct S { int atomicAdd; };",
    ],
)
def test_what_only_looks_like_an_atomic_is_not(text: str, tmp_path: Path) -> None:
    assert places(CUDA.format(text), tmp_path, "atomic_used") == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (CUDA.format("void f() { cudaMemcpy(a, b, n, cudaMemcpyHostToDevice); }"), 1),
        (CUDA.format("void f() {\n cudaMemcpyAsync(a, b,\n  n, cudaMemcpyDeviceToHost, s); }"), 1),
        (CUDA.format("void f() { cudaMemcpy2D(a, 1, b, 1, n, m, cudaMemcpyDefault); }"), 1),
        (CUDA.format("void f() { cudaMemcpy(a, b, n, kind); }"), 1),
        (CUDA.format("void f() { cudaMemcpy3D(&p); }"), 1),
        (CUDA.format("void f() { cudaMemcpyToSymbol(a, b, n); }"), 1),
        (CUDA.format("void f() { cuMemcpyHtoDAsync(a, b, n, s); cuMemcpy(a, b, n); }"), 2),
        (CUDA.format("void f() { cudaMemcpyAsync(a, b, n, cudaMemcpyDeviceToDevice, s); }"), 0),
        (CUDA.format("// cudaMemcpy(a, b, n, cudaMemcpyHostToDevice)"), 0),
        (CUDA.format('const char* s = "cuMemcpyHtoD(";'), 0),
        (RUST.format("fn f() { stream.memcpy_dtov(&x)?; dev.htod_sync_copy(&y)?; }"), 2),
        (RUST.format("fn f() { stream.memcpy_dtod(&x, &mut y)?; }"), 0),
        (RUST.format("fn f() { cudaMemcpy(a, b, n, cudaMemcpyKind::cudaMemcpyHostToDevice); }"), 1),
        (HOT + PYTHON.format("y = x.cpu()\nz = f(x.numpy())"), 2),
        (HOT + PYTHON.format("y = cpu()\nz = numpy(x)\n# x.cpu()"), 0),
        (HOT + PYTHON.format("z = x.numpy(force=True)\ny = x.cuda(1)"), 2),
        (HOT + PYTHON.format("y = x.to('cpu')\nz = x.to(device='cuda:1')\nw = x.to(half)"), 2),
        (PYTHON.format("y = x.cpu()"), 0),  # no declared hot path
    ],
)  # fmt: skip
def test_copies_between_host_and_device(text: str, count: int, tmp_path: Path) -> None:
    assert len(found(text, tmp_path, "host_device_copy")) == count


ADAPTIVE = "== lint.toml ==\n[adaptive]\nvalues = ['tau_eff']\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (RUST.format("fn f() { self.tau_eff += 0.1 * x; }"), 1),
        (RUST.format("fn f() { self.tau_eff = read(isv, SLOT_TAU); }"), 0),
        (RUST.format("fn f() { isv[i + 1] = x; }"), 0),
        (RUST.format("fn f() { isv[i] -= x; }"), 1),
        (RUST.format("fn f() { // isv[i] = a * b;\n }"), 0),
        (PYTHON.format("agent.tau_eff = 0.5 * (a + b)"), 1),
        (PYTHON.format("isv[TAU] *= 2"), 1),
        (PYTHON.format("tau_eff = isv[TAU]"), 0),
        (CUDA.format("void host(float* isv) { isv[TAU] = 0.5f * isv[TAU]; }"), 1),
        (CUDA.format("__global__ void k(float* isv) { isv[TAU] = 0.5f * isv[TAU]; }"), 0),
        (CUDA.format("__device__ void d(float* isv) { isv[TAU] = 0.5f * isv[TAU]; }"), 0),
    ],
)
def test_arithmetic_on_adaptive_values(text: str, count: int, tmp_path: Path) -> None:
    assert len(found(ADAPTIVE + text, tmp_path, "host_arithmetic")) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (RUST.format("impl Monitor for T { fn write_output(&self) {} }"), 1),
        (RUST.format("impl<T> AdaptiveMonitor for X<T> { fn read(&self, v: &mut [f32]) {} }"), 1),
        (RUST.format("impl TauMonitor { fn update(&mut self) {} }"), 1),
        (RUST.format("impl Optimizer for T { fn update(&mut self) {} }"), 0),
        (
            RUST.format("impl Monitor for T { fn observe(&mut self, v: &[f32]) { self.n += 1; } }"),
            0,
        ),
    ],
)
def test_monitors_that_write(text: str, count: int, tmp_path: Path) -> None:
    assert len(found(text, tmp_path, "monitor_writes")) == count


@pytest.mark.parametrize(
    "text",
    [
        RUST.format("pub fn upgrade_isv() {}"),
        CUDA.format("void migrate_isv_v2(float* p) { f(p); }"),
        PYTHON.format("class A:\n    def migrate_isv(self):\n        return 1"),
    ],
)
def test_functions_that_carry_a_layout_over(text: str, tmp_path: Path) -> None:
    assert len(found(text, tmp_path, "layout_carried_over")) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (CUDA.format("int GAMMA_EFF = 1;"), 1),
        (RUST.format('let s = "GAMMA_EFF";'), 1),
        (PYTHON.format("x = slots['GAMMA_EFF']"), 1),
        (PYTHON.format("x = GAMMA_EFFECT  # GAMMA_EFF"), 0),
        (RUST.format("/* GAMMA_EFF */ let X_GAMMA_EFF = 1;"), 0),
    ],
)
def test_retired_names(text: str, count: int, tmp_path: Path) -> None:
    settings = "== lint.toml ==\n[names]\nretired = ['GAMMA_EFF']\n"
    assert len(found(settings + text, tmp_path, "retired_name")) == count


def test_retired_names_of_a_layout_count_as_well(tmp_path: Path) -> None:
    settings = (
        "== lint.toml ==\n[names]\nlayout = 'layout.toml'\n"
        "== layout.toml ==\nretired = ['OLD_EMA']\n"
        "[[slot]]\nname = 'LAYOUT_FINGERPRINT'\nindex = 0\nlength = 2\n"
    )
    assert (
        len(found(settings + RUST.format("const OLD_EMA: u8 = 1;"), tmp_path, "retired_name")) == 1
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (CUDA.format("int x; // FIXME later"), 1),
        (CUDA.format("/* XXX\n * HACK */"), 2),
        (RUST.format("/// TODO: say more\nfn f() {}"), 1),
        (RUST.format('let s = "TODO"; let TODO_LIST = 1;'), 0),
        (PYTHON.format('def f():\n    """TODO: say more."""\n    return 1'), 1),
        (PYTHON.format("s = '''\nTODO\n'''"), 0),
        ("== plan.md ==\n# Plan\n\nTODO: measure\n", 1),
        ("== plan.md ==\nThe `TODO` marker\n\n```\nTODO\n```\n", 0),
    ],
)
def test_markers(text: str, count: int, tmp_path: Path) -> None:
    assert len(found(text, tmp_path, "placeholder_marker")) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (RUST.format("fn f() { unimplemented!(\"later\") }"), 1),
        (RUST.format("fn f() -> u8 { unreachable!() }"), 1),
        (RUST.format("fn f() -> u8 { panic!(\"not implemented\") }"), 1),
        (RUST.format("fn f(x: u8) -> u8 { if x > 1 { return 2; } unreachable!() }"), 0),
        (RUST.format("fn f() -> u8 { panic!(\"no device\") }"), 0),
        (RUST.format("fn f() {}"), 0),
        (PYTHON.format("def f():\n    raise NotImplementedError"), 1),
        (PYTHON.format("def f():\n    pass"), 1),
        (PYTHON.format("def f():\n    ..."), 1),
        (PYTHON.format('class P(Protocol):\n    def f(self): ...'), 0),
        (PYTHON.format(ABSTRACT), 0),
        (PYTHON.format('class E(Exception):\n    """Said."""\n'), 0),
        (PYTHON.format("@overload\ndef f(x: int) -> int: ..."), 0),
        (CUDA.format("__global__ void k(float* x) {}"), 1),
        (CUDA.format("void f() { __trap(); }"), 1),
        (CUDA.format('int f() { throw std::runtime_error("not implemented"); }'), 1),
        (CUDA.format("void f() {}"), 0),
    ],
)  # fmt: skip
def test_missing_bodies(text: str, count: int, tmp_path: Path) -> None:
    assert len(found(text, tmp_path, "body_missing")) == count


FLAGS = "== lint.toml ==\n[flags]\nfeatures = ['a']\nenvironment = ['HOME']\ndefines = ['FAST']\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (RUST.format('fn f() { if cfg!(feature = "b") { g(); } }'), 1),
        (RUST.format('#[cfg(all(feature = "a", not(feature = "c")))]\nfn f() {}'), 1),
        (RUST.format('#![cfg_attr(feature = "d", no_std)]'), 1),
        (RUST.format('fn f() { let x = std::env::var("SECRET"); let y = env::var("HOME"); }'), 1),
        (RUST.format("fn f() { let x = std::env::var(name); }"), 1),
        (RUST.format('const V: &str = env!("CARGO_PKG_NAME"); const W: &str = env!("OTHER");'), 1),
        (RUST.format('fn f() { println!("feature = \\"b\\""); }'), 0),
        (CUDA.format('bool f() { return getenv("SECRET") != nullptr; }'), 1),
        (CUDA.format(IFDEFS), 1),
        (CUDA.format("#if defined(SLOW) || defined(FAST)\nint x;\n#endif"), 1),
        (CUDA.format("#ifndef GUARD_H\n#define GUARD_H\nint x;\n#endif"), 0),
        (PYTHON.format("import os\nx = os.environ['SECRET']\ny = os.getenv('HOME')"), 1),
        (PYTHON.format("import os\nx = os.environ.get(name)\nos.environ['SET'] = '1'"), 1),
    ],
)  # fmt: skip
def test_flags(text: str, count: int, tmp_path: Path) -> None:
    assert len(found(FLAGS + text, tmp_path, "flag_undeclared")) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (CUDA.format("__global__ void k(float* isv) { float x = isv[49]; }"), 1),
        (CUDA.format("__global__ void k(float* isv) { float x = isv[SLOT_X]; y[3] = 1; }"), 0),
        (RUST.format("fn f(s: &S) -> f32 { s.isv[3] }"), 1),
        (RUST.format("fn f(s: &S) -> f32 { s.isv[i] + s.other[3] }"), 0),
        (PYTHON.format("x = agent.isv[3]"), 1),
        (PYTHON.format("x = agent.isv[TAU]\ny = z[3]"), 0),
    ],
)
def test_bare_indices(text: str, count: int, tmp_path: Path) -> None:
    assert len(found(text, tmp_path, "bare_index")) == count


SETS = next(kind.passes for kind in KINDS if kind.name == "kernel_sets_differ")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["tau.cu"]', '["tau.cu", "eps.cu"]', "eps is registered, and there is no such file"),
        ('["tau.cu"]', "[]", "tau is embedded, and not registered"),
        ('include_bytes!("tau.cubin")', "b\"\"", "tau is compiled, and nothing embeds it"),
        ('load_function("tau")', 'load_function("tua")', "tua is launched, and no kernel"),
        ("m.load_function(\"tau\");", "", "tau is never launched"),
        ("== build.rs", "== kernels/old.cu ==\n__global__ void o(int* p) { *p = 1; }\n== build.rs",
         "old is on disk, not registered"),
        ("[kernels]", "[kernels]\ndead = [{name = 'gone', reason = 'moved'}]",
         "gone is declared dead, and not there"),
    ],
)  # fmt: skip
def test_kernel_sets(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in SETS
    said = [one.got for one in found(SETS.replace(old, new), tmp_path, "kernel_sets_differ")]
    assert any(says in got for got in said), said


def test_a_dead_kernel_with_a_reason_passes(tmp_path: Path) -> None:
    text = SETS.replace("[kernels]", "[kernels]\ndead = [{name = 'old', reason = 'superseded'}]")
    text += "\n== kernels/old.cu ==\n__global__ void o(int* p) { *p = 1; }\n"
    assert found(text, tmp_path) == []


def test_launches_by_chevrons_count(tmp_path: Path) -> None:
    text = SETS.replace('m.load_function("tau");', "").replace(
        'host = ["host.rs"]', 'host = ["host.rs", "h.cu"]'
    )
    text += "\n== h.cu ==\nvoid go(float* p) { tau<<<1, 2, 0, s>>>(p); }\n"
    assert found(text, tmp_path) == []


DOCUMENTED = next(kind.passes for kind in KINDS if kind.name == "documented_value_differs")


@pytest.mark.parametrize(
    ("code", "doc", "count"),
    [
        ("pub const STATE_DIM: usize = 1_28;", "| state_dim | 128 |", 0),
        ("pub const STATE_DIM: usize = 128;", "| `state_dim` | 42 |", 1),
        ("pub const STATE_DIM: [usize; 2] = [4, 3];", "state_dim = [4, 3]", 0),
        ("pub const STATE_DIM: [usize; 2] = [4, 3];", "state_dim = [4,2]", 1),
        ("pub const STATE_DIM: usize = 0x80;", "state_dim = 128, and old_state_dim = 42", 0),
        ("pub const STATE_DIM: usize = 128;", "nothing", 1),
        ("pub const OTHER: usize = 128;", "state_dim = 128", 1),
        ("pub const STATE_DIM: usize = A + 1;", "state_dim = 128", 1),
    ],
)
def test_documented_values(code: str, doc: str, count: int, tmp_path: Path) -> None:
    text = DOCUMENTED.replace("pub const STATE_DIM: usize = 128;", code)
    text = text.replace("The width is `state_dim = 128`.", doc)
    assert len(found(text, tmp_path, "documented_value_differs")) == count


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("dims.cu", "#define STATE_DIM 128\n"),
        ("dims.cu", "constexpr int STATE_DIM = 128u;"),
        ("dims.cu", "enum { STATE_DIM = 128 };"),
        ("dims.py", "STATE_DIM: Final = 128"),
        ("dims.py", "STATE_DIM = 128"),
    ],
)
def test_documented_values_in_each_language(file: str, code: str, tmp_path: Path) -> None:
    text = DOCUMENTED.replace("dims.rs", file).replace("pub const STATE_DIM: usize = 128;", code)
    assert found(text, tmp_path / "good") == []
    assert len(found(text.replace("= 128`", "= 127`"), tmp_path / "bad")) == 1


def audit(counts: dict[str, int], summary: str) -> str:
    rows = [
        f"| m{status}{i} | {status} | T-{i} |" for status, n in counts.items() for i in range(n)
    ]
    table = "\n".join(["| Name | Status | Action |", "|---|---|---|", *rows])
    return (
        "== lint.toml ==\n[[audit]]\nfile = 'audit.md'\nstatus = 'Status'\n"
        "allowed = ['Wired', 'Partial', 'Orphan', 'Ghost', 'OUT']\ndone = ['Wired']\n"
        f"action = 'Action'\nsummary = true\n== audit.md ==\n{summary}\n\n{table}\n"
    )


WIRED = {"Wired": 74, "Partial": 7, "Orphan": 11, "Ghost": 0, "OUT": 17}


def test_the_wire_up_audit_adds_up(tmp_path: Path) -> None:
    """109 = 74 + 7 + 11 + 0 + 17."""
    text = audit(WIRED, "109 = 74 Wired + 7 Partial + 11 Orphan + 0 Ghost + 17 OUT")
    assert found(text, tmp_path) == []


@pytest.mark.parametrize(
    ("counts", "summary"),
    [
        (WIRED, "109 = 74 Wired + 7 Partial + 10 Orphan + 1 Ghost + 17 OUT"),
        (WIRED, "110 = 74 Wired + 7 Partial + 11 Orphan + 0 Ghost + 17 OUT"),
        ({**WIRED, "Wired": 73}, "109 = 74 Wired + 7 Partial + 11 Orphan + 0 Ghost + 17 OUT"),
        (WIRED, "no summary"),
    ],
)
def test_a_miscounted_audit_is_found(counts: dict[str, int], summary: str, tmp_path: Path) -> None:
    assert found(audit(counts, summary), tmp_path, "audit_miscounted")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| mOrphan0 | Orphan | T-0 |", "| mOrphan0 | Orphan | |"),
        ("| mOrphan0 | Orphan | T-0 |", "| mOrphan0 | evaluate | T-0 |"),
        ("| mOrphan0 | Orphan | T-0 |", "| mOrphan1 | Orphan | T-0 |"),
        ("| mOrphan0 | Orphan | T-0 |", "| mOrphan0 | | T-0 |"),
        ("| Name | Status | Action |", "| Name | State | Action |"),
    ],
)
def test_an_undecided_row_is_found(old: str, new: str, tmp_path: Path) -> None:
    text = audit({"Wired": 1, "Orphan": 2}, "3 = 1 Wired + 2 Orphan")
    assert old in text
    assert found(text.replace(old, new), tmp_path, "audit_undecided")


def test_forbidden_statuses_and_least_rows(tmp_path: Path) -> None:
    text = audit({"Wired": 3}, "3 = 3 Wired + 0 OUT").replace(
        "summary = true", "summary = true\nleast_rows = 12\nforbidden = ['Wired']"
    )
    rules = [finding.rule for finding in found(text, tmp_path)]
    assert rules.count(IDS["audit_undecided"]) == 3
    assert rules.count(IDS["audit_miscounted"]) == 1


def test_a_waiver_allows_its_line_and_is_shown(tmp_path: Path) -> None:
    text = RUST.format(
        "fn f() { todo!() } // trueup: allow SRC008 until 2999-12-31: its ticket is open\n"
        "// trueup: allow SRC008: the same below\nfn g() { todo!() }\nfn h() { todo!() }"
    )
    verdict = judged(text, tmp_path)
    assert [str(finding.where) for finding in verdict.findings] == ["4:10"]
    assert [use.reason for use in verdict.waivers] == ["its ticket is open", "the same below"]


@pytest.mark.parametrize(
    "waiver",
    ["allow SRC008", "allow SRC008:", "allow SRC008 until 2001-01-01: why not",
     "allow SRC008 until soon: why not", "allow SRC008 until 2026-02-30: why not"],
)  # fmt: skip
def test_a_waiver_without_reason_or_past_its_end_waives_nothing(
    waiver: str, tmp_path: Path
) -> None:
    rules = {
        f.rule for f in found(RUST.format(f"fn f() {{ todo!() }} // trueup: {waiver}"), tmp_path)
    }
    assert IDS["body_missing"] in rules
    assert IDS["waiver_unusable"] in rules


def test_columns_count_characters(tmp_path: Path) -> None:
    text = RUST.format('fn f() { let s = "äöü"; todo!() }')
    assert places(text, tmp_path, "body_missing") == ["k.rs:1:25"]


def test_excluded_files_and_links_are_not_read(tmp_path: Path) -> None:
    laid_out("== lint.toml ==\nexclude = ['gen/**']\n== gen/a.rs ==\nfn f() { todo!() }\n"
             "== b.rs ==\nfn g() { h() }\n", tmp_path)  # fmt: skip
    (tmp_path / "link.rs").symlink_to(tmp_path / "gen" / "a.rs")
    verdict = lint([str(tmp_path)], load_config(tmp_path / "lint.toml"))
    assert verdict.findings == ()
    assert [Path(one.path).name for one in verdict.artifacts] == ["b.rs"]


@pytest.mark.parametrize("raw", [b"x = 1\n\xff", b"def f(:"])
def test_a_file_that_cannot_be_judged_is_a_finding(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(raw)
    (tmp_path / "b.py").write_text("x = 1\n")
    rules = [f.rule for f in lint([str(tmp_path)], Config(tmp_path)).findings]
    assert rules == [IDS["source_unreadable"]]


def test_nothing_to_judge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no source to judge"):
        lint([str(tmp_path)], Config(tmp_path))
    with pytest.raises(Unreadable, match="does not exist"):
        lint([str(tmp_path / "no")], Config(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[copy]\n", "copies"), ("[copies]\npaths = 3\n", "paths"), ("[[audit]]\n", "audit"),
        ("[kernels\n", "lint.toml"), ("", "empty"),
    ],
)  # fmt: skip
def test_settings_with_a_fault_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lint.toml"
    path.write_text(text)
    with pytest.raises(Unreadable, match=message):
        load_config(path)


def test_settings_may_not_lead_out_of_their_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "layout.toml").write_text("x = 1")
    path = tmp_path / "a" / "lint.toml"
    path.write_text("[names]\nlayout = '../layout.toml'\n")
    with pytest.raises(Unreadable, match="names a file that is not there"):
        load_config(path)


@pytest.mark.parametrize(
    ("path", "glob", "fits"),
    [
        ("a/b/c.rs", "**/*.rs", True), ("c.rs", "**/*.rs", True), ("a/c.rs", "*.rs", False),
        ("a/b/c.rs", "a/**", True), ("a/b/c.rs", "a/*/c.rs", True), ("b/c.rs", "a/**", False),
    ],
)  # fmt: skip
def test_globs(path: str, glob: str, fits: bool) -> None:
    assert matches(path, [glob]) is fits


def test_many_files_are_judged_by_workers_alike(tmp_path: Path) -> None:
    for i in range(300):
        (tmp_path / f"f{i:03d}.rs").write_text(
            "fn f() { todo!() }\n" if i % 50 == 0 else "fn f() { g() }\n"
        )
    one = lint([str(tmp_path)], Config(tmp_path.resolve()), jobs=1)
    two = lint([str(tmp_path)], Config(tmp_path.resolve()), jobs=2)
    assert one.findings == two.findings
    assert len(two.findings) == 6
