"""What a rank that raises in a wrapper usually means, beside the error itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from grader.checking import CheckFailed
from tests.public.oracles.sessions import Session

OF_MODULE = ("parameters", "zero_grad", "state_dict", "named_parameters", "train", "eval", "to")
NO_MODULE = "a wrapper is an nn.Module itself"
AS_MODULE = "class DDP(nn.Module, ABC); __init__ begins with super().__init__(), then self.module = module"
NO_GRADIENT = "a .grad that is None counts as zeros"
UNSEEN = "the wrapper has no parameters: nn.Module does not see the module"
HOOKS = "hooks go on the parameters that require a gradient when the wrapper is made, and on no others"
NOTHING_TO_JOIN = "is there a bucket without parameters, or a list of those gradients that are not None?"
LOST_WORK = "dist.all_reduce returns a handle with async_op=True alone, else None"


@contextmanager
def explaining_errors(wrapper: str, sessions: Sequence[Session] = ()) -> Iterator[None]:
    """Adds to the failure of a world what its error tells, and what the session that it was in is about."""
    try:
        yield
    except CheckFailed as failed:
        told = failed.explanation
        more, help = _told(told.rationale, told.where, wrapper)
        hint = next((session.hint for session in sessions if f": {session.title}, " in told.rationale), "")
        rationale = f"{told.rationale}; {more}" if more else told.rationale
        advice = [told.help, help or hint]  # of any failure of a world, and of this one
        failed.explanation = replace(told, rationale=rationale, help="; ".join(filter(None, advice)))
        raise


def _told(error: str, where: str, wrapper: str) -> tuple[str, str]:
    """What follows from the error for certain, and one thing to try."""
    if any(f"'{wrapper}' object has no attribute '{name}'" in error for name in OF_MODULE):
        return NO_MODULE, AS_MODULE
    if "optimizer got an empty parameter list" in error:
        return UNSEEN, AS_MODULE
    if "'NoneType' object has no attribute 'wait'" in error:
        return "", LOST_WORK
    if "NoneType" in error and ".grad" in where:
        return NO_GRADIENT, ""
    if "expected a non-empty list of Tensors" in error:
        return "", NOTHING_TO_JOIN
    if "cannot register a hook" in error:
        return "", HOOKS
    return "", ""
