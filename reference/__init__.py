"""The equations, as NumPy float64 functions that read like their papers.

Importing this package fills the catalogue. It needs NumPy and the standard library only.
"""

from trueup.reference import dqn, isv, nl
from trueup.reference.catalogue import Equation, catalogue, equation, get, register
from trueup.reference.errata import SEVERITIES, Coincidence, Erratum
from trueup.reference.errors import (
    BadDeclaration,
    BadInputs,
    NotApplicable,
    ReferenceError_,
    UnknownEquation,
    UnknownReading,
)
from trueup.reference.symbols import DOMAINS, Domain, Family, Symbol

__all__ = [
    "DOMAINS",
    "SEVERITIES",
    "BadDeclaration",
    "BadInputs",
    "Coincidence",
    "Domain",
    "Equation",
    "Erratum",
    "Family",
    "NotApplicable",
    "ReferenceError_",
    "Symbol",
    "UnknownEquation",
    "UnknownReading",
    "catalogue",
    "dqn",
    "equation",
    "get",
    "isv",
    "nl",
    "register",
]
