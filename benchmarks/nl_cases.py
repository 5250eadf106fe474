"""The kernels of Nested Learning: shapes, least bytes and operations, the equations in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from cases import Case
from torch import Tensor

from trueup.kernels.torch.ops.descent import after_tokens
from trueup.kernels.torch.ops.orthogonal import newton_schulz as torch_newton_schulz

ALPHA, ETA = 0.9, 0.1
Result = tuple[Tensor, ...]


def delta_momentum_rank1(
    m: Tensor, W: Tensor, u: Tensor, x: Tensor, alpha: float, eta: float
) -> Result:
    """Eq. 22 for the gradient u x^T."""
    step = eta * ((u @ u) * (m @ x) + u)
    m = alpha * m - step[:, None] * x
    return m, W + m


def delta_momentum(m: Tensor, W: Tensor, g: Tensor, P: Tensor, alpha: float, eta: float) -> Result:
    """Eq. 22 for a full gradient."""
    residual = torch.addmm(P, m, g.T)
    m = torch.addmm(m, residual, g, beta=alpha, alpha=-eta)
    return m, W + m


def projected_descent(W: Tensor, x: Tensor, u: Tensor, eta: float) -> Result:
    """Eq. 28 for one sample."""
    return (W - (eta * (W @ x + u))[:, None] * x,)


def projected_descent_batch(W: Tensor, X: Tensor, U: Tensor, eta: float) -> Result:
    """Eq. 28 for the sum over a batch, samples in rows."""
    return (torch.addmm(W, W @ X.T + U.T, X, alpha=-eta),)


def projected_descent_chunk(W: Tensor, X: Tensor, U: Tensor, eta: Tensor, alpha: Tensor) -> Result:
    """Eq. 28 for each token in turn, in the compact form."""
    return (after_tokens(W, X, U, eta, alpha, "derived"),)


def preconditioned(m: Tensor, W: Tensor, g: Tensor, P: Tensor, alpha: float, eta: float) -> Result:
    """Eq. 20."""
    m = torch.addmm(m, P, g, beta=alpha, alpha=-eta)
    return m, W + m


def hadamard(m: Tensor, W: Tensor, g: Tensor, p: Tensor, alpha: float, eta: float) -> Result:
    """Eq. 20 with a factor for each element."""
    m = alpha * m - eta * p * g
    return m, W + m


def deep_momentum(A1: Tensor, A2: Tensor, W: Tensor, g: Tensor, alpha: float, eta: float) -> Result:
    """Eq. 23, the inner loss <F(g), g>."""
    S = torch.tanh(g @ A2.T)
    Q = (g @ A1) * (1 - S * S)
    A1, A2 = alpha * A1 - eta * (g.T @ S), alpha * A2 - eta * (Q.T @ g)
    return A1, A2, W + torch.tanh(g @ A2.T) @ A1.T


def newton_schulz(G: Tensor, O: Tensor, eps: float) -> Result:  # noqa: E741
    """Five quintic steps."""
    X = G.T if G.shape[0] > G.shape[1] else G
    X = X / torch.linalg.vector_norm(X).clamp(min=eps)
    for _ in range(5):
        A = X @ X.T
        B = torch.addmm(A, A, A, beta=-4.7750, alpha=2.0315)
        X = torch.addmm(X, B, X, beta=3.4445)
    return (X.T if G.shape[0] > G.shape[1] else X,)


def library_newton_schulz(G: Tensor, O: Tensor, eps: float) -> Callable[[], object]:  # noqa: E741
    """Call what torch.optim.Muon calls, which works in bf16."""
    from torch.optim import _muon

    run = _muon._zeropower_via_newtonschulz
    return lambda: run(G, (3.4445, -4.7750, 2.0315), 5, eps)


def muon(m: Tensor, W: Tensor, g: Tensor, alpha: float, eta: float, eps: float) -> Result:
    """Eq. 24 with Newton-Schulz."""
    m = alpha * m - g
    return m, W + eta * newton_schulz(m, m, eps)[0]


def m3(
    theta: Tensor, M1: Tensor, V: Tensor, S: Tensor, O2: Tensor, g: Tensor,
    beta1: float, beta2: float, alpha: float, eta: float, epsilon: float, eps: float,
) -> Result:  # fmt: skip
    """Every step of M3."""
    M1, V, S = M1 + beta1 * g, V + beta2 * g * g, S + g
    step = (newton_schulz(M1, M1, eps)[0] + alpha * O2) / (V.sqrt() + epsilon)
    return theta - eta * step, M1, V, S


def adam_memory(sum_g: Tensor, sum_gg: Tensor, g: Tensor, lam: float, M: Tensor) -> Result:
    """Adam as an associative memory."""
    sum_g, sum_gg = sum_g + g, sum_gg + g * g
    return sum_g, sum_gg, sum_gg.sqrt() * sum_g / (lam + sum_gg)


def cms_level(x: Tensor, W1: Tensor, W2: Tensor, y: Tensor) -> Result:
    """Eq. 30, one level."""
    return (x + torch.nn.functional.silu(x @ W1.T) @ W2.T,)


def cms_level_update(
    W1: Tensor, W2: Tensor, x: Tensor, delta: Tensor, mask: Tensor, eta: float, counts: Tensor
) -> Result:
    """Eq. 31, the gradient of a chunk at its start; every token is active."""
    z = x @ W1.T
    s = torch.sigmoid(z)
    e = (delta @ W2) * (s * (1 + z * (1 - s)))
    W1 = torch.addmm(W1, e.T, x, alpha=-eta)
    W2 = torch.addmm(W2, delta.T, z * s, alpha=-eta)
    counted = counts.clone()
    counted[0] += 1
    counted[1:3] += x.shape[0]
    return W1, W2, counted


def linear_attention(
    q: Tensor, k: Tensor, v: Tensor, M_0: Tensor, mask: Tensor, y: Tensor, M_T: Tensor
) -> Result:
    """Eq. 13-14, read after the write, in chunks of 64 tokens; every token writes."""
    N, T, d_k = q.shape
    parts = (N, T // 64, 64)
    q, k, v = q.view(*parts, d_k), k.view(*parts, d_k), v.view(*parts, v.shape[-1])
    writes = v.mT @ k
    if writes.dtype is not torch.float64:
        writes = writes.float()
    after = M_0[:, None].to(writes.dtype) + writes.cumsum(1)
    before = (after - writes).to(q.dtype)
    out = q @ before.mT + (q @ k.mT).tril() @ v
    return out.view(N, T, -1), after[:, -1]


def _rank1(d_out: int, d_in: int, versus: bool = False) -> Case:
    return Case(
        "nl.delta_momentum_rank1",
        {"d_out": d_out, "d_in": d_in},
        4 * (4 * d_out * d_in + d_out + d_in),
        delta_momentum_rank1,
        {"u": d_out**-0.5, "x": d_in**-0.5},
        {"alpha": ALPHA, "eta": ETA},
        variants=_rows("delta_momentum_rank1") if versus else (),
    )


def _descent(d_out: int, d_in: int, versus: bool = False) -> Case:
    return Case(
        "nl.projected_descent",
        {"d_out": d_out, "d_in": d_in},
        4 * (2 * d_out * d_in + d_out + d_in),
        projected_descent,
        {"u": d_out**-0.5, "x": d_in**-0.5},
        {"eta": ETA},
        variants=_rows("projected_descent") if versus else (),
    )


def _batch(B: int, side: int) -> Case:
    return Case(
        "nl.projected_descent_batch",
        {"B": B, "d_out": side, "d_in": side},
        4 * (2 * side * side + 2 * B * side),
        projected_descent_batch,
        {"U": side**-0.5, "X": side**-0.5 / max(1.0, B**0.5 / 2)},
        {"eta": ETA},
        4 * B * side * side,
        "tf32",
    )


def _full(side: int) -> Case:
    return Case(
        "nl.delta_momentum",
        {"d_out": side, "d_in": side},
        4 * 6 * side * side,
        delta_momentum,
        {"P": side**-0.5, "g": 0.5 * side**-0.5},
        {"alpha": ALPHA, "eta": ETA},
        4 * side**3,
    )


def _chunk(C: int, side: int) -> Case:
    return Case(
        "nl.projected_descent_chunk",
        {"C": C, "d_out": side, "d_in": side},
        4 * (2 * side * side + 2 * C * side),
        projected_descent_chunk,
        {"U": side**-0.5, "X": side**-0.5},
        {
            "eta": lambda: torch.full((C,), ETA, device="cuda"),
            "alpha": lambda: torch.ones(C, device="cuda"),
        },
        4 * C * side * side,
        "tf32",
    )


def _precond(side: int) -> Case:
    return Case(
        "nl.preconditioned_momentum",
        {"d_out": side, "d_in": side},
        4 * 6 * side * side,
        preconditioned,
        {"P": side**-0.5},
        {"alpha": ALPHA, "eta": ETA},
        2 * side**3,
    )


def _hadamard(side: int, bf16: bool = False) -> Case:
    return Case(
        f"nl.preconditioned_momentum_hadamard{'_bf16' if bf16 else ''}",
        {"d_out": side, "d_in": side},
        (8 + 2 * 4 if bf16 else 4 * 6) * side * side,
        hadamard,
        fixed={"alpha": ALPHA, "eta": ETA},
    )


def _deep(side: int, h: int) -> Case:
    return Case(
        "nl.deep_momentum",
        {"d_out": side, "d_in": side, "h": h},
        4 * (3 * side * side + 4 * side * h),
        deep_momentum,
        {"A1": h**-0.5, "A2": side**-0.5, "g": side**-0.5},
        {"alpha": ALPHA, "eta": ETA},
        12 * side * side * h,
    )


def _orthogonal(r: int, c: int, bf16: bool) -> Case:
    n, m = min(r, c), max(r, c)
    return Case(
        f"nl.newton_schulz{'_bf16' if bf16 else ''}",
        {"r": r, "c": c},
        (2 if bf16 else 4) * 2 * r * c,
        newton_schulz,
        fixed={"eps": 1e-7},
        # Of X X^T and of the polynomial in it half is enough: they are symmetric.
        operations=5 * (n * n * m + n**3 + 2 * n * n * m),
        rate="bf16" if bf16 else "f32",
        library=library_newton_schulz,
    )


def _symmetric(r: int, c: int) -> Case:
    def op(G: Tensor, O: Tensor, eps: float) -> Result:  # noqa: E741
        return (torch_newton_schulz(G, eps=eps),)

    note = "torch op: Triton, symmetric products"
    return replace(_orthogonal(r, c, bf16=True), op=op, note=note)


def _muon(side: int) -> Case:
    return Case(
        "nl.muon",
        {"d_out": side, "d_in": side},
        4 * 5 * side * side,
        muon,
        fixed={"alpha": ALPHA, "eta": 0.02, "eps": 1e-7},
        operations=20 * side**3,
    )


def _m3(side: int) -> Case:
    scalars = {"beta1": 0.9, "beta2": 0.99, "alpha": 0.5, "eta": 0.01, "epsilon": 1e-8}
    positive = {"V": lambda: torch.rand(side, side, device="cuda") + 0.5}
    return Case(
        "nl.m3",
        {"d_out": side, "d_in": side},
        4 * 10 * side * side,
        m3,
        {"g": side**-0.5, "O2": side**-0.5},
        {**scalars, **positive, "eps": 1e-7},
        20 * side**3,
    )


def _adam(side: int) -> Case:
    return Case(
        "nl.adam_memory",
        {"d_out": side, "d_in": side},
        4 * 6 * side * side,
        adam_memory,
        fixed={"lam": 1e-8, "sum_gg": lambda: torch.rand(side, side, device="cuda") + 0.5},
    )


def _level(T: int, d: int, h: int) -> Case:
    return Case(
        "nl.cms_level",
        {"T": T, "d": d, "h": h},
        4 * (2 * d * h + 2 * T * d),
        cms_level,
        {"W1": d**-0.5, "W2": h**-0.5},
        operations=4 * T * d * h,
        rate="tf32",
    )


def _update(C: int, d: int, h: int, ending: str = "") -> Case:
    return Case(
        f"nl.cms_level_update{ending}",
        {"C": C, "d": d, "h": h},
        4 * (4 * d * h + 2 * C * d),
        cms_level_update,
        {"W1": d**-0.5, "W2": h**-0.5, "delta": 0.1 * d**-0.5},
        {
            "eta": 0.01,
            "mask": lambda: torch.ones(C, dtype=torch.uint8, device="cuda"),
            "counts": lambda: torch.zeros(4, dtype=torch.int32, device="cuda"),
        },
        8 * C * d * h,
        "tf32",
    )


def _attention(N: int, T: int, d: int, bf16: bool = False) -> Case:
    size = 2 if bf16 else 4
    return Case(
        f"nl.linear_attention{'_bf16' if bf16 else ''}",
        {"N": N, "T": T, "d_k": d, "d_v": d},
        N * (4 * T * d * size + 2 * 4 * d * d + T),
        linear_attention,
        {"k": d**-0.5, "q": d**-0.5},
        {"mask": lambda: torch.ones(N, T, dtype=torch.uint8, device="cuda")},
        N * T * (2 * 2 * 64 * d + 2 * 2 * d * d),
        "bf16" if bf16 else "tf32",
    )


def _rows(entry: str) -> list[dict[str, tuple[str, str]]]:
    """List other launches of a kernel that takes a row a block."""
    tried = [("min(d_out, 528)", "256"), ("min(d_out, 1056)", "256"), ("d_out", "256")]
    tried += [("min(d_out, 528)", "512"), ("min(d_out, 1056)", "512"), ("d_out", "512")]
    return [{entry: pair} for pair in tried]


CASES: list[Case] = [
    _rank1(4096, 4096, versus=True),
    _rank1(16384, 1024),
    _rank1(4095, 4097),
    _descent(4096, 4096, versus=True),
    _descent(16384, 1024),
    _descent(4095, 4097),
    _batch(64, 4096),
    _chunk(64, 4096),
    _attention(128, 4096, 64),
    _attention(128, 4096, 64, bf16=True),
    _full(4096),
    _precond(4096),
    _hadamard(4096),
    _hadamard(4096, bf16=True),
    _deep(4096, 256),
    _orthogonal(4096, 4096, bf16=True),
    _orthogonal(1024, 4096, bf16=True),
    _symmetric(4096, 4096),
    _symmetric(1024, 4096),
    _orthogonal(2048, 2048, bf16=False),
    _orthogonal(4096, 4096, bf16=False),
    _muon(2048),
    _m3(2048),
    _adam(4096),
    _level(64, 1024, 4096),
    _level(4096, 1024, 4096),
    _update(64, 1024, 4096),
    _update(64, 1024, 4096, "_tf32"),
]
