"""How an operator is made: a schema, plain torch on every device, a shipped kernel on CUDA.

Operators are defined through `torch.library.Library`: a call costs 2 microseconds in the
dispatcher, an eighth of what the `custom_op` decorator's wrappers cost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any

import torch

from trueup.kernels.torch.device import contract_path, kernel, why_not

LIBRARY = torch.library.Library("trueup", "DEF")
_REASONS: dict[str, str | None] = {}
SMALL = 512 * 512
"""Elements up to which matrix products run in our kernels. Above, library products were faster on
an H200: Eq. 22 at 4096 x 4096 took 5.5 ms against 6.7, Newton-Schulz at 2048 x 2048 5.3 against
6.4 (in bfloat16 at 1024 x 4096 0.25 against 0.83), deep momentum at 4096 x 4096 1.2 against 1.7.
Below, a call's cost on the host decides: Newton-Schulz in bfloat16 is queued in 95 us, by the
library in 320."""


def operator(
    schema: str,
    plain: Callable[..., Any],
    *,
    fast: Callable[..., Any] | None = None,
    fake: Callable[..., Any],
) -> Any:
    """Define an operator and return its overload.

    `plain` computes it in torch; `fast` launches kernels through `launch` and returns the result,
    or a `Refused`, after which `plain` is called. `fake` gives shapes alone.
    """
    name = schema.split("(", 1)[0]
    LIBRARY.define(schema)
    LIBRARY.impl(name, plain, "CPU")
    LIBRARY.impl(name, plain if fast is None else _on_cuda(name, plain, fast), "CUDA")
    overload = getattr(torch.ops.trueup, name).default
    for device in ("cpu", "cuda"):
        LIBRARY.impl(name, _without_autocast(overload, device), f"Autocast{device.upper()}")
    torch.library.register_fake(f"trueup::{name}", fake, lib=LIBRARY)
    return overload


class Refused(str):
    """Why a kernel was not launched."""


def large(matrix: torch.Tensor) -> Refused | None:
    """Refuse a matrix for which the library's products are faster, as measured; else None."""
    if matrix.numel() > SMALL:
        return Refused("the library's products are faster for matrices of this size")
    return None


def launch(contract: str, *given: Any) -> Refused | None:
    """Launch a shipped kernel on the tensors' device and stream, or say why it refuses them."""
    missing = why_not()
    if missing is not None:
        return Refused(missing)
    if not _shipped(contract):
        return Refused(f"no kernel {contract} is shipped")
    reason = kernel(contract).attempt(*given)
    return None if reason is None else Refused(reason)


@cache
def _shipped(contract: str) -> bool:
    return contract_path(contract).is_file()


def last_reason(name: str) -> str | None:
    """Say why the last CUDA call of an operator ran in plain torch; None if a kernel ran.

    `name` is the operator's, such as "projected_descent_". Raises KeyError for an operator that
    has not been called on a CUDA tensor in this process.
    """
    return _REASONS[name]


def _on_cuda(name: str, plain: Callable[..., Any], fast: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        result = fast(*args)
        if isinstance(result, Refused):
            _REASONS[name] = result
            return plain(*args)
        _REASONS[name] = None
        return result

    return run


def _without_autocast(overload: Any, device: str) -> Callable[..., Any]:
    """Keep autocast out of an operator: it says itself what is computed in float32."""

    def run(*args: Any) -> Any:
        with torch.autocast(device, enabled=False):
            return overload(*args)

    return run


def nothing(*_: Any) -> None:
    """Be the fake of an operator that works in place and returns nothing."""


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor in float32 where it is stored in 16 bits: sums are not made in those."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def in_place(name: str, *written: torch.Tensor) -> None:
    """Raise RuntimeError where a tensor to be written is part of autograd's graph."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in written):
        raise RuntimeError(
            f"{name} works in place and is not differentiable: call it under torch.no_grad(), "
            "or use the function without the trailing underscore"
        )


def one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raise ValueError where an option is none of those known."""
    if value not in known:
        raise ValueError(f"{name}: got {value!r}, expected one of {', '.join(known)}")


def at_least(name: str, value: int, low: int) -> None:
    """Raise ValueError unless a value is a whole number of `low` or more."""
    if not isinstance(value, Integral) or value < low:
        raise ValueError(f"{name}: got {value!r}, expected a whole number of {low} or more")


def number(value: object) -> float:
    """Give a real number as a float, and NaN, which is in no range, for anything else."""
    return float(value) if isinstance(value, Real) else float("nan")
