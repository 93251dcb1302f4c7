"""Why a group cannot even begin with an operation: what one rank can see by itself. Pure."""

from __future__ import annotations

from grader.world.operation import Operation


def refusal(operation: Operation) -> str:
    """Why the group cannot even begin with it, or "": a rank that it does not have, or tensors that do not go together.

    What compares ranks relies on the numbers of tensors.
    """
    name, size = operation.name, len(operation.group)
    for what, number in (("root", operation.root), ("peer", operation.peer)):
        if number is not None and not 0 <= number < size:
            told = f"the {what} {number} is no rank of a group of {size}: they are 0 to {size - 1}"
            return f"{name}: {told}"
    is_root = operation.root == operation.group_rank
    reads, writes = len(operation.reads), len(operation.writes)
    each = f"one tensor for each rank of the group ({size})"
    match name:
        case "send" if reads != 1:
            return "send sends one tensor"
        case "send" if operation.peer == operation.group_rank:
            return f"send to rank {operation.rank} by rank {operation.rank} itself: keep a copy of the piece instead"
        case "recv" if writes != 1:
            return "recv receives one tensor"
        case "broadcast" | "reduce" if operation.root is None or reads + writes < 1:
            return f"{name} needs a tensor and a root"
        case "scatter" if operation.root is None or writes != 1 or reads != (size if is_root else 0):
            return f"scatter needs {each} on the root and none elsewhere; it got {reads}"
        case "gather" if operation.root is None or reads != 1 or writes != (size if is_root else 0):
            return f"gather needs {each} on the root and none elsewhere; it got {writes}"
        case "all_gather" if reads != 1 or writes != size:
            return f"all_gather needs {each} as its output; it got {writes}"
        case "reduce_scatter" if writes != 1 or reads != size:
            return f"reduce_scatter needs {each} as its input; it got {reads}"
        case "all_to_all" | "all_to_all_single" if not reads == writes == size:
            kind = "split sizes" if name == "all_to_all_single" else "tensors"
            return f"{name} gives and takes {each}; it got {reads} input and {writes} output {kind}"
        case "barrier":
            return ""
        case _ if reads + writes < 1:
            return f"{name} needs a tensor"
        case _:
            return _unlike(operation)


def _unlike(operation: Operation) -> str:
    """What one rank's tensors have to have in common, where they have not: gloo would say so when others wait."""
    name, size = operation.name, len(operation.group)
    reads, writes = operation.reads, operation.writes
    match name:
        case "all_gather":
            odd = next((spec for spec in writes if spec != reads[0]), None)
            return f"all_gather gives {reads[0]} and has room for {odd}: they must be alike" if odd else ""
        case "all_to_all":
            odd = next((spec for spec in (*reads, *writes) if spec != reads[0]), None)
            return (
                f"all_to_all has {reads[0]} and {odd}: on a CPU only all_to_all_single has unequal pieces"
                if odd
                else ""
            )
        case "all_gather_into_tensor" if reads and writes and reads[0].shape:
            rows, *rest = reads[0].shape
            wanted = (size * rows, *rest)
            fits = writes[0].shape == wanted
            return "" if fits else f"{name} of {reads[0]} needs an output of shape {wanted}, not {writes[0].shape}"
        case _:
            return ""
