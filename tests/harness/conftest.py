"""What the tests of the product share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.world import Launcher


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """One launcher without a jail for all tests of a process; a launcher survives whatever a world does."""
    with Launcher() as started:
        yield started
