"""Programs that call collectives.py: calls and arguments only."""


def broadcast(here, *, calls, tensors):
    """Yields for each case {"result", "input"}: what came back, and the argument as it is afterwards."""
    for call, tensor in zip(calls, tensors, strict=True):
        result = here.submission.broadcast(tensor, call["src"])
        yield {"result": result, "input": tensor}
