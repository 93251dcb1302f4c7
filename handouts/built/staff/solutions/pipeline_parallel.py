"""Module 5. Pipeline parallelism: each rank holds some of the layers, and microbatches flow through the ranks.

Two ideas carry this module. A schedule is data: a list of actions that says what one stage does, in order,
and that can be printed and tested without a process group. A stage executes it.

Of n items (layers, rows) piece r of W has n // W + (1 if r < n % W else 0), in order: `piece_sizes` and
`piece_range` of grader.given. There is also `Kind`, which says what an `Action` does with a microbatch.
Sender and receiver both know the number of microbatches and their sizes from `num_rows`: nobody sends a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from grader.given import Action, Group

# isort: split
from typing import Literal, NamedTuple

from grader.given import Kind, piece_range, piece_sizes


def split_layers(num_layers: int, num_stages: int) -> list[range]:
    """The layers of each stage: consecutive ranges that cover every layer once, by the uneven rule.

    Example: 7 layers on 3 stages are range(0, 3), range(3, 5), range(5, 7).

    Raises ValueError if there are fewer layers than stages, or no stage.
    """
    if num_stages < 1:
        raise ValueError(f"num_stages is {num_stages}; expected at least 1")
    if num_layers < num_stages:
        raise ValueError(f"{num_layers} layers cannot fill {num_stages} stages; expected at least one layer each")
    return [piece_range(num_layers, stage, num_stages) for stage in range(num_stages)]


def split_microbatches(batch: Tensor, num_microbatches: int) -> list[Tensor]:
    """Exactly `num_microbatches` views of the rows (dimension 0) of `batch`, in order, by the uneven rule.

    Unlike torch's `chunk`, never fewer: sender and receiver rely on the number and on the sizes.

    Example: 10 rows in 4 microbatches are rows 0-2, 3-5, 6-7, 8-9.

    Raises ValueError if num_microbatches is below 1 or above the number of rows.
    """
    num_rows = batch.shape[0] if batch.dim() > 0 else 0
    if not 1 <= num_microbatches <= num_rows:
        raise ValueError(f"num_microbatches is {num_microbatches}; expected 1 to {num_rows}, the number of rows")
    pieces = [piece_range(num_rows, k, num_microbatches) for k in range(num_microbatches)]
    return [batch[rows.start : rows.stop] for rows in pieces]


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
    if not 0 <= stage < num_stages:
        raise ValueError(f"stage is {stage}; expected 0 to {num_stages - 1}")
    if num_microbatches < 1:
        raise ValueError(f"num_microbatches is {num_microbatches}; expected at least 1")
    has_previous, has_next = stage > 0, stage < num_stages - 1
    schedule: list[Action] = []
    for k in range(num_microbatches):
        if has_previous:
            schedule.append(Action(Kind.RECEIVE_ACTIVATION, k))
        schedule.append(Action(Kind.FORWARD, k))
        if has_next:
            schedule.append(Action(Kind.SEND_ACTIVATION, k))
    for k in range(num_microbatches):
        if has_next:
            schedule.append(Action(Kind.RECEIVE_GRADIENT, k))
        schedule.append(Action(Kind.BACKWARD, k))
        if has_previous:
            schedule.append(Action(Kind.SEND_GRADIENT, k))
    return schedule


FORWARD_KINDS = (Kind.RECEIVE_ACTIVATION, Kind.FORWARD, Kind.SEND_ACTIVATION)
COMPUTE_KINDS = (Kind.FORWARD, Kind.BACKWARD)
SEND_KINDS = (Kind.SEND_ACTIVATION, Kind.SEND_GRADIENT)
NEXT_KINDS = (Kind.SEND_ACTIVATION, Kind.RECEIVE_GRADIENT)  # the peer is the next stage


class Step(NamedTuple):
    """One step of a stage's program: compute a microbatch, or post (isend, irecv) or wait for a message."""

    verb: Literal["compute", "post", "wait"]
    action: Action


def steps_in_order(schedule: Sequence[Action]) -> list[Step]:
    """The schedule as steps that wait for each message as soon as it is posted: nothing overlaps."""
    steps: list[Step] = []
    for action in schedule:
        if action.kind in COMPUTE_KINDS:
            steps.append(Step("compute", action))
        else:
            steps += [Step("post", action), Step("wait", action)]
    return steps


def steps_overlapped(schedule: Sequence[Action]) -> list[Step]:
    """The same messages in the same order per peer, each with a microbatch's computation to hide behind.

    A receive is posted before the computation that comes before its own, if that is of the same phase. It
    never moves over the other phase: the peer posts its sends in the order of the schedule, and on NCCL a
    receive that is posted out of that order blocks. A send is waited for after the next computation, or at
    the end.

    Example, the forward phase of a stage in the middle (p is post, w is wait):
        p:ra0 w:ra0   p:ra1 F0 p:sa0   w:ra1   p:ra2 F1 w:sa0 p:sa1   w:ra2   F2 w:sa1 p:sa2   ...
    """
    steps: list[Step] = []
    posted: Action | None = None  # the receive that is posted ahead of its turn
    sending: Action | None = None  # the send that is not waited for yet
    for position, action in enumerate(schedule):
        if action.kind in COMPUTE_KINDS:
            receive = Kind.RECEIVE_ACTIVATION if action.kind is Kind.FORWARD else Kind.RECEIVE_GRADIENT
            posted = next((later for later in schedule[position + 1 :] if later.kind is receive), None)
            if posted is not None:
                steps.append(Step("post", posted))
            steps.append(Step("compute", action))
            if sending is not None:
                steps.append(Step("wait", sending))
                sending = None
        elif action.kind in SEND_KINDS:
            steps.append(Step("post", action))
            sending = action
        else:
            if action != posted:
                steps.append(Step("post", action))
            steps.append(Step("wait", action))
    if sending is not None:
        steps.append(Step("wait", sending))
    return steps


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
        super().__init__()
        if num_microbatches < 1:
            raise ValueError(f"num_microbatches is {num_microbatches}; expected at least 1")
        stage = dist.get_rank(group)
        if stage < 0:
            raise ValueError(f"rank {dist.get_rank()} is not in the group; expected a member")
        self.layers = layers
        self.num_microbatches = num_microbatches
        self.input_shape = tuple(input_shape)
        self.dtype = dtype
        self.device = torch.device(device)
        self.overlap = overlap
        self.group = group
        self.stage = stage
        self.num_stages = dist.get_world_size(group)
        self.ranks = dist.get_process_group_ranks(group)  # of each stage, as send and recv want them
        self.is_first, self.is_last = stage == 0, stage == self.num_stages - 1

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
        run = _Run(self, num_rows=num_rows, batch=batch)
        schedule = gpipe_schedule(self.stage, self.num_stages, self.num_microbatches)
        run.execute([action for action in schedule if action.kind in FORWARD_KINDS])
        if not self.is_last:
            return None
        return torch.cat([run.outputs[k] for k in range(self.num_microbatches)]).detach().contiguous()

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
        run = _Run(self, num_rows=num_rows, batch=batch, target=target, loss_fn=loss_fn)
        run.execute(gpipe_schedule(self.stage, self.num_stages, self.num_microbatches))
        return torch.stack(run.losses) if self.is_last else None


def _microbatches(name: str, rows: Tensor | None, num_rows: int, num_microbatches: int) -> list[Tensor]:
    """The microbatches of an argument that this stage reads, outside autograd. ValueError if malformed."""
    if rows is None:
        raise ValueError(f"{name} is missing; this stage reads it, expected a tensor of {num_rows} rows")
    if rows.dim() == 0 or rows.shape[0] != num_rows:
        raise ValueError(f"{name} has shape {tuple(rows.shape)}; expected num_rows = {num_rows} rows")
    return split_microbatches(rows.detach(), num_microbatches)


class _Run:
    """One call of a stage: executes its steps and holds, by microbatch, all that is alive between them.

    The run refers to the stage and nothing refers to the run but the call, so all of it is freed on return.
    """

    def __init__(
        self,
        stage: PipelineStage,
        *,
        num_rows: int,
        batch: Tensor | None,
        target: Tensor | None = None,
        loss_fn: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        """Checks the arguments of a call. Without a loss function the run is forward only."""
        m = stage.num_microbatches
        if num_rows < m:
            raise ValueError(f"num_rows is {num_rows}; expected at least {m}, one for each microbatch")
        self.stage = stage
        self.num_rows = num_rows
        self.rows = piece_sizes(num_rows, m)  # of each microbatch
        self.loss_fn = loss_fn
        self.training = loss_fn is not None
        self.batch = _microbatches("batch", batch, num_rows, m) if stage.is_first else []
        self.target = _microbatches("target", target, num_rows, m) if stage.is_last and self.training else []
        self.inputs: dict[int, Tensor] = {}  # received activations; in training leaves, kept until backward
        self.outputs: dict[int, Tensor] = {}  # what the layers made, or its loss; in training with the graph
        self.losses: list[Tensor] = []
        self.output_gradients: dict[int, Tensor] = {}  # received
        self.input_gradients: dict[int, Tensor] = {}  # to be sent
        self.in_flight: dict[Action, tuple[dist.Work, Tensor]] = {}  # a lost handle or buffer breaks the peer

    def execute(self, schedule: Sequence[Action]) -> None:
        """Runs the schedule. When it returns, every message has been waited for."""
        steps = steps_overlapped(schedule) if self.stage.overlap else steps_in_order(schedule)
        with torch.set_grad_enabled(self.training):
            for verb, action in steps:
                if verb == "post":
                    self.post(action)
                elif verb == "wait":
                    self.wait(action)
                elif action.kind is Kind.FORWARD:
                    self.forward(action.microbatch)
                else:
                    self.backward(action.microbatch)

    def post(self, action: Action) -> None:
        """Starts the action's message. Each receive has a buffer of its own: it lives until backward."""
        stage, k = self.stage, action.microbatch
        peer = stage.ranks[stage.stage + 1 if action.kind in NEXT_KINDS else stage.stage - 1]
        if action.kind is Kind.RECEIVE_ACTIVATION:
            buffer = torch.empty(self.rows[k], *stage.input_shape, dtype=stage.dtype, device=stage.device)
        elif action.kind is Kind.RECEIVE_GRADIENT:
            buffer = self.outputs[k].new_empty(self.outputs[k].shape)
        elif action.kind is Kind.SEND_ACTIVATION:
            buffer = (self.outputs[k] if self.training else self.outputs.pop(k)).detach().contiguous()
        else:
            buffer = self.input_gradients.pop(k).contiguous()
        start = dist.isend if action.kind in SEND_KINDS else dist.irecv
        work = start(buffer, peer, group=stage.group)
        assert work is not None, "torch returns None outside the group only"
        self.in_flight[action] = (work, buffer)

    def wait(self, action: Action) -> None:
        """Completes the action's message, frees what was sent, and keeps what was received."""
        work, buffer = self.in_flight.pop(action)
        work.wait()
        if action.kind is Kind.RECEIVE_ACTIVATION:
            # It must be a leaf that requires grad, or backward would compute no gradient to send back.
            differentiable = buffer.is_floating_point() or buffer.is_complex()
            self.inputs[action.microbatch] = buffer.requires_grad_(self.training and differentiable)
        elif action.kind is Kind.RECEIVE_GRADIENT:
            self.output_gradients[action.microbatch] = buffer

    def forward(self, k: int) -> None:
        """The layers, and on the last stage of a training step the loss."""
        self.outputs[k] = self.stage.layers(self.entering(k))
        if self.loss_fn is not None and self.stage.is_last:
            self.outputs[k] = self.loss_fn(self.outputs[k], self.target[k].to(self.stage.device))
            self.losses.append(self.outputs[k].detach())

    def entering(self, k: int) -> Tensor:
        """The input of the layers, which may act on it in place: so not the caller's rows, and not a leaf."""
        if self.stage.is_first:
            return self.batch[k].to(self.stage.device, copy=True)
        return self.inputs[k].clone() if self.training else self.inputs.pop(k)

    def backward(self, k: int) -> None:
        """Adds the microbatch's part to every `.grad`, and keeps what the previous stage waits for."""
        output = self.outputs.pop(k)
        if self.stage.is_last:
            gradient = torch.full_like(output, self.rows[k] / self.num_rows)  # of the whole loss by this one
        else:
            gradient = self.output_gradients.pop(k)
        if output.requires_grad:  # not so on a first stage without trainable parameters
            torch.autograd.backward(output, gradient)
        if not self.stage.is_first:
            leaf = self.inputs.pop(k)
            self.input_gradients[k] = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
