"""The checks on evaluations, by name."""

from __future__ import annotations

from trueup.gates.documents.model import CheckDocument, DocumentCheck
from trueup.gates.evals import checkpoint, dead, sums, values
from trueup.gates.evals.answers import parameters_problem
from trueup.gates.evals.forms import eval_form

_NUMBER = (int, float)


def _check(
    run: CheckDocument,
    summary: str,
    params: dict[str, tuple[type, ...]] | None = None,
    optional: tuple[str, ...] = (),
) -> DocumentCheck:
    """A check on evaluations, called like the function that does it."""
    return DocumentCheck(
        run.__name__, ("eval",), summary, run, params or {}, optional, problem=parameters_problem
    )


def _rounded(run: CheckDocument, summary: str) -> DocumentCheck:
    """A check on numbers that are printed with so many decimals at least."""
    return _check(run, summary, {"decimals": (int,)}, ("decimals",))


CHECKS: tuple[DocumentCheck, ...] = (
    _check(eval_form, "the document is of a known kind and fits the schema of that kind"),
    _check(
        checkpoint.eval_names_checkpoint, "it names its checkpoint by path, SHA-256 and step"
    ),
    _check(checkpoint.eval_checkpoint_inside, "the checkpoint is a file of the run directory"),
    _check(checkpoint.eval_checkpoint_digest, "the checkpoint has the SHA-256 that is stated"),
    _check(
        checkpoint.eval_checkpoint_step,
        "the step is that of the file name and of the metadata, under one of the keys `steps`",
        {"steps": (list,)}, ("steps",),
    ),
    _check(
        checkpoint.eval_newer,
        "it was created after its checkpoint, whose metadata says when under one of `times`",
        {"times": (list,)}, ("times",),
    ),
    _check(values.eval_accuracy_range, "accuracies lie in [0, 1]"),
    _rounded(values.eval_accuracy, "an accuracy is correct / n, to `decimals` or what is printed"),
    _rounded(values.eval_delta, "a delta is the improvement, and memorized the value reported"),
    _rounded(values.eval_stderr, "a standard error is that of n answers"),
    _check(sums.eval_counts, "correct is at most n, and totals are sums"),
    _rounded(sums.eval_mean, "a mean is that of its entries, weighted as it says"),
    _check(
        sums.eval_perplexity,
        "perplexity, bits and total follow from the loss, within the relative `rtol`",
        {"rtol": _NUMBER, "decimals": (int,)}, ("rtol", "decimals"),
    ),
    _rounded(sums.eval_transfer, "average, forgetting and transfer are those of the matrix"),
    _check(sums.eval_distinct, "nothing is measured twice under one name"),
    _check(sums.eval_grid, "every context length is measured at every depth"),
    _check(
        dead.eval_moved, "not all deltas are 0 where memorisation was on; `least` accuracies tell",
        {"least": (int,)}, ("least",),
    ),
    _check(dead.eval_updates, "not all update counts are 0 where memorisation was on"),
    _check(
        dead.eval_not_training, "no value is the least, largest or last of `columns` of the log",
        {"columns": (list,)},
    ),
    _check(
        dead.eval_not_copied, "two checkpoints differ in one of `least` values or more",
        {"least": (int,)}, ("least",),
    ),
    _check(dead.eval_kinds, "there is a result of each of `kinds`", {"kinds": (list,)}),
)  # fmt: skip
