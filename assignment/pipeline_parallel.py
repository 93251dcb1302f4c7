"""Module 5. Pipeline parallelism: each rank holds some of the layers, and microbatches flow through the ranks.

Two ideas carry this module. A schedule is data: a list of actions that says what one stage does, in order,
and that can be printed and tested without a process group. A stage executes it.

Of n items (layers, rows) piece r of W has n // W + (1 if r < n % W else 0), in order: `piece_sizes` and
`piece_range` of grader.given. There is also `Kind`, which says what an `Action` does with a microbatch.
Sender and receiver both know the number of microbatches and their sizes from `num_rows`: nobody sends a shape.

To do: put your code in place of each `raise NotImplementedError(...)`. Names, arguments and docstrings stay.
To check this module, from the folder above: pytest -k test_pipeline_parallel
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from grader.given import Action, Group


def split_layers(num_layers: int, num_stages: int) -> list[range]:
    """The layers of each stage: consecutive ranges that cover every layer once, by the uneven rule.

    Example: 7 layers on 3 stages are range(0, 3), range(3, 5), range(5, 7).

    Raises ValueError if there are fewer layers than stages, or no stage.
    """
    raise NotImplementedError("return one range of layers for each stage")


def split_microbatches(batch: Tensor, num_microbatches: int) -> list[Tensor]:
    """Exactly `num_microbatches` views of the rows (dimension 0) of `batch`, in order, by the uneven rule.

    Unlike torch's `chunk`, never fewer: sender and receiver rely on the number and on the sizes.

    Example: 10 rows in 4 microbatches are rows 0-2, 3-5, 6-7, 8-9.

    Raises ValueError if num_microbatches is below 1 or above the number of rows.
    """
    raise NotImplementedError("return the microbatches as views of the batch")


def gpipe_schedule(stage: int, num_stages: int, num_microbatches: int) -> list[Action]:
    """What one stage does in a training step, in order: GPipe's schedule (Huang et al., 2019).

    First the forwards of microbatches 0 to m-1, then the backwards of 0 to m-1. Each FORWARD has its
    RECEIVE_ACTIVATION right before it and its SEND_ACTIVATION right after it; each BACKWARD has its
    RECEIVE_GRADIENT right before it and its SEND_GRADIENT right after it. The first stage receives no
    activation and sends no gradient; the last stage sends no activation and receives no gradient. Pure data:
    nothing is sent.

    Example, two microbatches on three stages:
        stage 0:      F0 sa0     F1 sa1   rg0 B0     rg1 B1
        stage 1:  ra0 F0 sa0 ra1 F1 sa1   rg0 B0 sg0 rg1 B1 sg1
        stage 2:  ra0 F0     ra1 F1           B0 sg0     B1 sg1

    Raises ValueError if the stage is not in range(num_stages) or num_microbatches is below 1.
    """
    raise NotImplementedError("return the list of actions of this stage")


class PipelineStage(nn.Module):
    """One stage of a pipeline. Every rank of the group makes one; its number is the rank in the group.

    `layers` are this stage's own, on `device` already; the same object is kept. `input_shape` and `dtype` are
    those of one row that enters this stage, without the row dimension: on stage 0 a row of the batch, on the
    others a row of what the previous stage computes. The layers may change both, and may act in place on
    their input.

    Messages: one for each microbatch and direction, between neighbours only. The activation goes to the next
    stage; the gradient of the loss with respect to it comes back, in the activation's shape and dtype. So it
    is for stages without trainable parameters too. Nothing else is sent (no shapes, no losses), and a world
    of 1 sends nothing.

    Example: stage 1 of 3 with overlap off executes, for two microbatches,
    ra0 F0 sa0 ra1 F1 sa1 rg0 B0 sg0 rg1 B1 sg1, as `gpipe_schedule(1, 3, 2)` says.

    overlap=False: each receive and each send is complete before the next action of the schedule begins.
    overlap=True: the same messages, in the same order between each pair of ranks, and the same results.
    Within each phase the next receive is posted (irecv) before this microbatch is computed, and between
    posting a receive or a send (isend) and waiting for it at least one microbatch is computed, where there is
    one. A buffer lives until its send is waited for, by the end of the step.

    Raises ValueError, before anything is sent, if num_microbatches is below 1 or this rank is not in the
    group.
    """

    layers: nn.Sequential

    def __init__(
        self,
        layers: nn.Sequential,
        *,
        num_microbatches: int,
        input_shape: Sequence[int],
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        overlap: bool = False,
        group: Group = None,
    ) -> None:
        raise NotImplementedError("check the arguments and keep what the two calls need")

    def forward_only(self, batch: Tensor | None = None, *, num_rows: int) -> Tensor | None:
        """The network's output for the whole batch, computed microbatch by microbatch, without a graph.

        Every rank calls it with the same `num_rows`. Before: stage 0 holds `batch`, (num_rows, ...);
        elsewhere a batch is ignored. After: the last stage returns the outputs of all rows in order, new and
        contiguous; the others return None. The batch is unchanged, although layers may act in place on their
        input. No stage holds an activation, a message or a graph. On the way it holds one received activation
        when it begins a microbatch; with overlap two, that of the next microbatch too.

        Raises ValueError, before anything is sent: on every rank if num_rows is below num_microbatches; on
        stage 0 if the batch is missing or has other than num_rows rows.
        """
        raise NotImplementedError("run the forwards and return the output on the last stage")

    def train_step(
        self,
        batch: Tensor | None = None,
        target: Tensor | None = None,
        *,
        loss_fn: Callable[[Tensor, Tensor], Tensor],
        num_rows: int,
    ) -> Tensor | None:
        """Forward and backward of the whole batch by GPipe's schedule. The optimizer's step is the caller's.

        Every rank calls it with the same `num_rows`. Before: stage 0 holds `batch` and the last stage
        `target`, both with num_rows rows; elsewhere they are ignored. `loss_fn(output, target)` is a mean
        over its rows; only the last stage calls it, once for each microbatch.

        After: every trainable parameter's `.grad` has grown by the gradient of the whole network's loss on
        the whole batch, because microbatch k weighs rows_k / num_rows. Nothing is cleared. The last stage
        returns the (num_microbatches,) detached losses, each the mean over its own rows, unweighted; the
        others return None. Batch and target are unchanged. No stage holds an activation, a message or a
        graph.

        Raises ValueError, before anything is sent: on every rank if num_rows is below num_microbatches; on
        stage 0 if the batch, on the last stage if the target is missing or has other than num_rows rows.
        """
        raise NotImplementedError("run the whole schedule and return the losses on the last stage")
