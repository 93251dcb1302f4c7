"""The checks are right: each fails for the wrong solutions that it is there for, and passes the right ones.

One test for each mutant and variant; `pytest tests/harness/test_mutants.py -k collectives` for one module.
"""

from __future__ import annotations

import pytest

from grader.checking.spec import MODULES
from grader.checking.verdict import Status
from grader.world import Launcher
from tests.harness import mutation
from tests.mutants.mutant import Mutant, Variant

CHECKS = mutation.checks()
MUTANTS = [(module, one) for module in MODULES for one in mutation.mutants_of(module)]
VARIANTS = [(module, one) for module in MODULES for one in mutation.variants_of(module)]


@pytest.mark.parametrize(("module", "mutant"), MUTANTS, ids=[f"{module}-{one.name}" for module, one in MUTANTS])
def test_mutant_fails_its_checks(module: str, mutant: Mutant, launcher: Launcher) -> None:
    submission = mutation.edited(module, mutant)
    assert mutant.fails, "a mutant names at least one check that it fails"
    for name in mutant.fails:
        verdict = mutation.verdict_of(CHECKS[name], submission, launcher, stuck=mutation.expects_hang(mutant))
        wanted = (mutant.status,) if mutant.status else (Status.FAIL, Status.CRASH, Status.TIMEOUT)
        assert verdict.status in wanted, f"{name}: {verdict.explanation}\n{verdict.output}"


@pytest.mark.parametrize(("module", "variant"), VARIANTS, ids=[f"{module}-{one.name}" for module, one in VARIANTS])
def test_variant_passes(module: str, variant: Variant, launcher: Launcher) -> None:
    submission = mutation.edited(module, variant)
    for listed in CHECKS.values():
        name = listed.spec.name
        if name in variant.checks or (listed.spec.module == module and not variant.checks):
            verdict = mutation.verdict_of(listed, submission, launcher)
            assert verdict.status is Status.PASS, f"{name}: {verdict.explanation}\n{verdict.output}"


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_has_a_mutant_that_fails_it(name: str) -> None:
    assert any(name in mutant.fails for _, mutant in MUTANTS), f"no wrong solution fails {name}"


def test_names_of_mutants_are_unique() -> None:
    names = [(module, one.name) for module, one in [*MUTANTS, *VARIANTS]]
    assert len(names) == len(set(names))
