"""What each sample is. Pure data: they follow the reference as it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.mutants.mutant import Edit


@dataclass(frozen=True)
class Sample:
    """One submission.

    name:    of the folder, or of the zip.
    story:   what this student handed in.
    blank:   modules that are the stub; all others are the reference.
    edits:   by module, of the reference.
    missing: modules that were not handed in.
    nested:  handed in as NAME.zip with one folder inside.
    """

    name: str
    story: str
    blank: tuple[str, ...] = ()
    edits: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    nested: bool = False


EVERYTHING = (
    "collectives",
    "benchmark",
    "data_parallel",
    "tensor_parallel",
    "pipeline_parallel",
    "accounting",
)

SAMPLES = (
    Sample("complete", "everything is right"),
    Sample("blank", "the stubs as they were given out", blank=EVERYTHING),
    Sample(
        "half_done",
        "three modules are right, three are not written",
        blank=("tensor_parallel", "pipeline_parallel", "accounting"),
    ),
    Sample(
        "wrong_answers",
        "one classic mistake in each module",
        edits={
            "collectives": (Edit("return total.div_(world_size) if op == _AVG else total", "return total"),),
            "benchmark": (Edit('passes = 2 if operation == "all_reduce" else 1', "passes = 2"),),
            "data_parallel": (Edit("    flat /= dist.get_world_size(group)\n", ""),),
            "tensor_parallel": (Edit("        dist.all_reduce(summed, op=dist.ReduceOp.SUM, group=ctx.group)\n", ""),),
            "pipeline_parallel": (
                Edit("torch.full_like(output, self.rows[k] / self.num_rows)", "torch.ones_like(output)"),
            ),
        },
    ),
    Sample(
        "raises",
        "reduce raises on the root, where the others wait for nothing",
        edits={
            "collectives": (
                Edit(
                    "    received = torch.empty_like(total)\n",
                    '    raise RuntimeError("I do not know how to add these")\n',
                ),
            )
        },
    ),
    Sample(
        "deadlocks",
        "in all_to_all every rank sends first, and nobody receives",
        edits={
            "collectives": (
                Edit(
                    "messages.append(dist.P2POp(dist.isend, outgoing[peer], group=group, group_peer=peer))",
                    "dist.send(outgoing[peer], group=group, group_dst=peer)",
                ),
                Edit(
                    "messages.append(dist.P2POp(dist.irecv, incoming[peer], group=group, group_peer=peer))",
                    "dist.recv(incoming[peer], group=group, group_src=peer)",
                ),
            )
        },
    ),
    Sample(
        "exits",
        "gather leaves the interpreter on every rank but the root",
        edits={
            "collectives": (
                Edit(
                    "import torch\nimport torch.distributed as dist",
                    "import os\nimport torch\nimport torch.distributed as dist",
                ),
                Edit(
                    "        dist.send(piece, group=group, group_dst=dst)\n        return None\n",
                    "        os._exit(0)\n",
                ),
            )
        },
    ),
    Sample("nested", "everything is right, in a zip with one folder inside", nested=True),
    Sample("module_missing", "tensor_parallel.py was forgotten", missing=("tensor_parallel",)),
    Sample(
        "syntax_error",
        "the pipeline does not compile",
        edits={
            "pipeline_parallel": (Edit("def split_microbatches(", "def split_microbatches(("),),
        },
    ),
)
