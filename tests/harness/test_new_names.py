"""The assignment works on torch before 2.13, where the tensor forms of two collectives have their old names only.

torch 2.13 has both. Here each rank takes the new ones away before the submission is imported, and the checks of
what is built on them run again.
"""

from __future__ import annotations

import pytest
import torch.distributed as dist

from grader.checking.submission import Submission
from grader.checking.verdict import Status
from grader.world import Launcher
from tests.harness import mutation
from tests.mutants.mutant import Edit, Mutant

NEW_NAMES = ("all_gather_single", "reduce_scatter_single")
IMPORTS = "from __future__ import annotations\n"
# The process that ranks are forked from may have imported grader.given with the new names already.
WITHOUT_NEW_NAMES = f"""{IMPORTS}
import sys
import torch.distributed
for _name in {NEW_NAMES}:
    if hasattr(torch.distributed, _name):
        delattr(torch.distributed, _name)
sys.modules.pop("grader.given", None)
"""
# By module, the functions of the reference that call a tensor form, or grader.given's exchange_sizes, which does.
CALLERS = {
    "collectives": ("gather", "all_gather"),
    "benchmark": ("benchmark_collective",),
    "data_parallel": ("loss_scale",),
}
CHECKS = {
    name: listed
    for name, listed in mutation.checks().items()
    if set(listed.spec.needs) & set(CALLERS.get(listed.spec.module, ()))
}


def without_new_names(module: str, *edits: Edit) -> Submission:
    """The reference, whose module `module` begins by taking the new names away; then edited."""
    taken_away = Edit(IMPORTS, WITHOUT_NEW_NAMES)
    return mutation.edited(module, Mutant("without_new_names", "", (taken_away, *edits), fails=()))


@pytest.mark.parametrize(
    ("module", "function"), [(module, function) for module, functions in CALLERS.items() for function in functions]
)
def test_every_caller_has_a_check(module: str, function: str) -> None:
    assert any(spec.module == module and function in spec.needs for spec in (one.spec for one in CHECKS.values()))


@pytest.mark.parametrize("name", CHECKS)
def test_reference_passes_without_the_new_names(name: str, launcher: Launcher) -> None:
    listed = CHECKS[name]
    verdict = mutation.verdict_of(listed, without_new_names(listed.spec.module), launcher)
    assert verdict.status is Status.PASS, f"{verdict.explanation}\n{verdict.output}"


@pytest.mark.skipif(not hasattr(dist, NEW_NAMES[0]), reason="this torch never had the new names")
@pytest.mark.parametrize("form", NEW_NAMES)
def test_a_submission_that_needs_a_new_name_fails(form: str, launcher: Launcher) -> None:
    listed = CHECKS["benchmark.size_of_the_whole_array"]
    needs_it = Edit(f"partial(given.{form},", f"partial(dist.{form},")
    verdict = mutation.verdict_of(listed, without_new_names("benchmark", needs_it), launcher)
    assert verdict.status is Status.FAIL
    assert verdict.explanation is not None
    assert form in verdict.explanation.rationale
