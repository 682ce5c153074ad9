"""What scores tell about more than the rows they were counted on; pure, on numpy alone."""

from langchain_groundedness.evals.statistics.agreement import (
    LabelAgreement,
    label_agreement,
    run_agreement,
)
from langchain_groundedness.evals.statistics.comparison import (
    PairedComparison,
    ScoreChange,
    compare_runs,
    compare_scores,
)
from langchain_groundedness.evals.statistics.intervals import Estimate, estimate_mean, require_run
from langchain_groundedness.evals.statistics.slices import Slice, slice_scores

__all__ = [
    "Estimate",
    "LabelAgreement",
    "PairedComparison",
    "ScoreChange",
    "Slice",
    "compare_runs",
    "compare_scores",
    "estimate_mean",
    "label_agreement",
    "require_run",
    "run_agreement",
    "slice_scores",
]
