"""The checks on manifests of bundles, by name."""

from __future__ import annotations

from trueup.gates.bundle import listed, variants
from trueup.gates.documents.model import CheckDocument, DocumentCheck
from trueup.gates.evals.answers import parameters_problem


def _check(run: CheckDocument, summary: str, param: str = "") -> DocumentCheck:
    """A check on manifests, called like the function that does it; `param` is a list of names."""
    params = {param: (list,)} if param else {}
    return DocumentCheck(
        run.__name__, ("manifest",), summary, run, params, problem=parameters_problem
    )


CHECKS: tuple[DocumentCheck, ...] = (
    _check(listed.bundle_form, "the manifest fits its schema"),
    _check(listed.bundle_paths, "every path is relative and plain"),
    _check(listed.bundle_clashes, "no path stands twice, nor two that differ in case or accents"),
    _check(listed.bundle_present, "every listed file is there, as a regular file"),
    _check(listed.bundle_digests, "every file has the SHA-256 that is listed"),
    _check(listed.bundle_sizes, "every file has the size that is listed"),
    _check(listed.bundle_unlisted, "no other file lies in the bundle"),
    _check(listed.bundle_order, "files and variants stand in the order of their names"),
    _check(listed.bundle_totals, "the totals are those of the list"),
    _check(variants.bundle_variants, "each of `variants` is there, once", "variants"),
    _check(
        variants.bundle_evals, "each variant has a result of each of `kinds`, listed rightly",
        "kinds",
    ),
    _check(variants.bundle_apart, "no two variants share a result or a measured checkpoint"),
)  # fmt: skip
