"""The TOML beside a kernel: read, checked by schema, and held against itself."""

from trueup.oracle.contract.bus import Bus
from trueup.oracle.contract.load import find_contracts, is_contract, load_contract
from trueup.oracle.contract.model import Arg, Call, Contract, LaunchPlan, Limit

__all__ = [
    "Arg",
    "Bus",
    "Call",
    "Contract",
    "LaunchPlan",
    "Limit",
    "find_contracts",
    "is_contract",
    "load_contract",
]
