"""From a contract to a launch on torch's stream: contract, plan, compiler, driver, kernel."""

from trueup.kernels.torch.device.contract import Contract, contract_path, load_contract
from trueup.kernels.torch.device.kernels import Kernel, kernel, why_not

__all__ = ["Contract", "Kernel", "contract_path", "kernel", "load_contract", "why_not"]
