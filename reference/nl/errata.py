"""The errata of Nested Learning: what the print says, and what its algebra gives.

``errata("E14")`` gives those of an equation. Each has a numeric witness in the tests of the
equations it concerns.
"""

from __future__ import annotations

from trueup.reference.errata import Erratum

_ALL = (
    Erratum("E1", "C", "linear objectives have no minimiser: `min` means one gradient or proximal "
            "step, and only objective and gradient can be given"),
    Erratum("E2", "C", "u is a vector in one place and a matrix in another; the circled cross is "
            "the outer product u x^T"),
    Erratum("E3", "B", "the 2-norm of a matrix must be the Frobenius norm; the spectral norm gives "
            "another step, W - eta |G|_* U V^T, as soon as G has rank 2"),
    Erratum("E4", "C", "Eq. 6 has the input x_t where Eq. 5 has x_{t+1}: the gradient at one "
            "sample would be paired with the input of another"),
    Erratum("E5", "A", "the two signs of Eq. 7 and 8 combine to gradient ascent, W + eta G; "
            "exactly one of them must be flipped"),
    Erratum("E6", "C", "the text before Eq. 9 calls the matrix gradient u"),
    Erratum("E7", "A", "the penalty is weighted by eta instead of 1/(2 eta): the step becomes "
            "G/(2 eta), larger for a smaller rate"),
    Erratum("E8", "C", "projections are written for row vectors in a paper of column vectors: "
            "k = W_k^T x"),
    Erratum("E9", "A", "the sign and a missing 1/2 in Eq. 15 make its minimiser M - v k^T / 2; "
            "Eq. 16 is right as printed"),
    Erratum("E10", "C", "the text gives the gradient of -<M k, v> as v k^T; it is -v k^T"),
    Erratum("E11", "B", "the output is read after the write, M_t q_t; the self-modifying form "
            "reads before it"),
    Erratum("E12", "B", "eta carries a foreign index, the text swaps the names of alpha and eta, "
            "and under a schedule the rule is not the SGD of the common libraries"),
    Erratum("E13", "B", "P multiplies from the left only; a scaling of single elements is not an "
            "instance of it and must be declared"),
    Erratum("E14", "A", "g^T g cannot multiply m from the left, the term of P has the wrong sign, "
            "eta is missing on the quadratic term, and so is the factor 2 of the objective"),
    Erratum("E15", "B", "what m(u) returns is not said; a linear memory gives Eq. 17 only if it is "
            "read at the identity, and the example's all-ones target is not the formula's I"),
    Erratum("E16", "A", "with a residual branch the decay drives the memory to m(u) = u, which "
            "climbs; the all-ones target ignores the sign of the gradient"),
    Erratum("E17", "A", "Newton-Schulz normalises its input, so a learning rate inside m cancels: "
            "it must stand outside"),
    Erratum("E18", "A", "the target has the wrong sign, the decay lacks eta, and the objective "
            "gives a factor 2"),
    Erratum("E19", "A", "I - x x^T has the eigenvalue 1 - |x|^2 along x: without normalised inputs "
            "it expands once |x|^2 > 2"),
    Erratum("E20", "A", "projecting the gradient, or the weights after the step, erases the "
            "gradient: x^T (I - x x^T / |x|^2) = 0"),
    Erratum("E21", "B", "the rule rests at W x = -u, which is no stationary point of the loss"),
    Erratum("E22", "C", "the chunk size is defined by itself; meant is C_l = C_max / f_l"),
    Erratum("E23", "A/B", "the sum has C + 1 terms, starts at i = 0, and takes the extra term at "
            "older parameters"),
    Erratum("E24", "B", "sum or mean, the optimiser inside or outside the sum, and the sign if f "
            "is a step already are left open"),
    Erratum("E25", "C", "the sample is indexed t + 1 in Eq. 3 and t in Eq. 25: the same trajectory "
            "with the data shifted by one"),
    Erratum("S-a", "A", "the anchor of a chunk is printed as its end, C ceil(t/C); meant is the "
            "last state before it, C floor((t-1)/C)"),
    Erratum("S-b", "A", "the dot objective's step is transcribed with a minus; its gradient gives "
            "+ eta v k^T"),
    Erratum("S-c", "B", "the gradient of |M k - v|^2 has a factor 2 that the recurrence drops"),
    Erratum("S-d", "B", "the decay already subtracts eta M k k^T, so a repeated pair converges to "
            "v/2 (factor 1) or 2v/3 (factor 2), not to v"),
    Erratum("S-e", "B", "which matrix of an MLP memory the decay multiplies is not stated; only "
            "the input side fits where the widths differ"),
    Erratum("S-f", "C", "the ranges of the generated rates are not specified"),
    Erratum("S-g", "B", "not the gated delta rule of the libraries, which scales the state by "
            "alpha before the delta step: they agree at alpha = 1 only"),
)  # fmt: skip

ERRATA = {entry.id: entry for entry in _ALL}


def errata(*ids: str) -> tuple[Erratum, ...]:
    """Give errata by id, in the order asked for. Raises KeyError for an unknown one."""
    return tuple(ERRATA[id] for id in ids)
