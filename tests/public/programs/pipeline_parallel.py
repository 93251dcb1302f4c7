"""Programs that call pipeline_parallel.py: calls and arguments only."""

import gc
import weakref
from collections import Counter

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from grader.world.program import attempt, message_of, shares_memory


def laid_out(tensor, transposed):
    """The same numbers, in memory in another order where `transposed` says so."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if transposed else tensor


class Scale(nn.Module):
    """The input times a factor that is no parameter; in place where it says so."""

    def __init__(self, factor, in_place):
        super().__init__()
        self.register_buffer("factor", factor)
        self.in_place = in_place

    def forward(self, x):
        return x.mul_(self.factor) if self.in_place else x * self.factor


class Cast(nn.Module):
    """The input in another dtype."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        return x.to(self.dtype)


class Transpose(nn.Module):
    """The input with its last two dimensions exchanged: not contiguous."""

    def forward(self, x):
        return x.transpose(-1, -2)


class Mean(nn.Module):
    """The mean over the last dimension."""

    def forward(self, x):
        return x.mean(dim=-1)


def module_of(layer):
    """The module that `layer` describes."""
    match layer["kind"]:
        case "linear":
            weight, bias = layer["weight"], layer["bias"]
            module = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
            module.weight = nn.Parameter(weight)
            module.bias = None if bias is None else nn.Parameter(bias)
        case "embedding":
            module = nn.Embedding.from_pretrained(layer["weight"], freeze=False)
        case "tanh":
            module = nn.Tanh()
        case "relu":
            module = nn.ReLU(inplace=layer["in_place"])
        case "scale":
            module = Scale(layer["factor"], layer["in_place"])
        case "cast":
            module = Cast(layer["dtype"])
        case "transpose":
            module = Transpose()
        case "mean":
            module = Mean()
    return module.requires_grad_(not layer["frozen"])


def made(here, pipeline, group=None):
    """The layers that a pipeline has on this rank, and the submission's stage of them."""
    layers = nn.Sequential(*map(module_of, pipeline["layers"]))
    options = pipeline["options"] if group is None else {**pipeline["options"], "group": group}
    return layers, here.submission.PipelineStage(layers, **options)


class Progress:
    """Marks where this rank begins and ends the forward and the backward of each microbatch, by hooks on its layers.

    At a mark that a call's holds name, the rank waits for another rank's mark in the same call. Calls are numbered.
    """

    def __init__(self, here, layers):
        self.here, self.number, self.holds, self.counts = here, -1, [], Counter()
        layers[0].register_forward_pre_hook(lambda _, __: self.microbatch("begun the forward"))
        layers[-1].register_forward_hook(self.forward_ends)
        next(layers.parameters()).register_hook(lambda _: self.microbatch("done the backward"))

    def start(self, number, holds=()):
        """A call begins."""
        self.number, self.holds, self.counts = number, holds, Counter()

    def forward_ends(self, _, __, output):
        """The backward of this microbatch begins when the gradient of its output is there."""
        if output.requires_grad:
            output.register_hook(lambda _: self.microbatch("begun the backward"))
        self.microbatch("done the forward")

    def microbatch(self, done):
        """The next microbatch has come so far."""
        self.reach(f"{done} of microbatch {self.counts[done]}")
        self.counts[done] += 1

    def reach(self, mark):
        """The mark, and what holds there."""
        self.here.mark(f"{mark} in call {self.number}")
        for hold in self.holds:
            if hold["at"] == mark:
                self.here.hold(until=f"{hold['until']} in call {self.number}", of=hold["of"])


def run(here, *, pipelines):
    """Yields what became of each call of each pipeline, then the ranks that this one hears of."""
    number = -1
    for pipeline in pipelines:
        group = None if pipeline["group"] is None else dist.new_group(pipeline["group"])
        if pipeline["group"] is not None and here.rank not in pipeline["group"]:
            outcome = attempt(made, here, pipeline, group)
            yield from [{"raised": outcome.get("raised", [])} for _ in pipeline["calls"]]
            number += len(pipeline["calls"])
            continue
        layers, stage = made(here, pipeline, group)
        for parameter, gradient in zip(layers.parameters(), pipeline["gradients"], strict=True):
            parameter.grad = None if gradient is None else gradient.clone()
        sizes = []
        layers[-1].register_forward_hook(lambda _, __, output, sizes=sizes: sizes.append(len(output)))
        progress = Progress(here, layers) if pipeline["marked"] else None
        for each in pipeline["calls"]:
            number += 1
            sizes.clear()
            if progress:
                progress.start(number, each["holds"])
            batch = None if each["batch"] is None else laid_out(each["batch"], each["transposed"])
            losses = []
            result = call(stage, each, batch, losses)
            if progress:
                progress.reach("come to the end")
            yield {
                "result": result,
                "new": not (isinstance(result, Tensor) and batch is not None and shares_memory(result, batch)),
                "gradients": [parameter.grad for parameter in layers.parameters()],
                "batch": batch,
                "target": each["target"],
                "sizes": list(sizes),
                "losses": losses,
                "kept": stage.layers is layers,
            }
    yield roll_call(here)


def call(stage, each, batch, losses):
    """Calls the stage; `losses` gets the number of rows of each call of the loss function."""
    if each["call"] == "forward_only":
        return stage.forward_only(batch, num_rows=each["num_rows"])

    def loss_fn(output, target):
        losses.append(len(target))
        return getattr(F, each["loss"])(output, target)

    return stage.train_step(batch, each["target"], loss_fn=loss_fn, num_rows=each["num_rows"])


def roll_call(here):
    """The ranks that this rank hears of when each sends its number to each: a stray message would show."""
    heard = [torch.tensor([here.rank]) for _ in range(here.world_size)]
    others = [rank for rank in range(here.world_size) if rank != here.rank]
    works = [dist.isend(heard[here.rank], rank) for rank in others] + [dist.irecv(heard[rank], rank) for rank in others]
    for work in works:
        work.wait()
    return [int(rank) for rank in heard]


def refuse(here, *, pipelines):
    """Yields for each pipeline what became of making its stage, or of calling it where this rank does."""
    for pipeline in pipelines:
        outcome = None
        if pipeline["making"]:
            outcome = attempt_alone(lambda pipeline=pipeline: made(here, pipeline)[1])
        else:
            _, stage = made(here, pipeline)
            for each in pipeline["calls"]:
                outcome = attempt_alone(call, stage, each, each["batch"], [])
        yield {"outcome": outcome, "heard": roll_call(here)}


def attempt_alone(function, *arguments):
    """As `attempt`, but the errors of a process group pass through: a call that waits is seen where it waits."""
    try:
        return {"value": function(*arguments)}
    except RuntimeError:
        raise
    except Exception as error:
        return {"raised": [kind.__name__ for kind in type(error).__mro__], "message": message_of(error)}


def train(here, *, pipeline, optimizer):
    """Trains with AdamW, one batch a step; yields the parameters after each step."""
    layers, stage = made(here, pipeline)
    adam = torch.optim.AdamW(layers.parameters(), **optimizer)
    for each in pipeline["calls"]:
        adam.zero_grad()
        call(stage, each, each["batch"], [])
        adam.step()
        yield [parameter.detach() for parameter in layers.parameters()]


class Token:
    """Something that a graph holds, to see when the graph is gone."""

    def ignore(self, *gradients):
        """A hook that changes nothing."""


def hold(here, *, pipelines):
    """Yields for each call how many graphs it built, and what it held.

    graphs, shapes: the graphs that are left, and the shapes of the tensors that are left and have `row_shapes`.
    received:       the tensors with rows of `entering_row` that are alive when each forward begins; None: not asked.
    """
    number = -1
    for pipeline in pipelines:
        layers, stage = made(here, pipeline)
        tokens = []
        layers[-1].register_forward_hook(lambda _, __, output, tokens=tokens: tokens.append(token_of(output)))
        progress = Progress(here, layers)
        for each in pipeline["calls"]:
            number += 1
            tokens.clear()
            gc.collect()
            living = Living()
            progress.start(number)
            watch = layers[0].register_forward_pre_hook(living.look_at(each["entering_row"]))
            call(stage, each, each["batch"], [])
            watch.remove()
            living.known += [parameter.grad for parameter in layers.parameters()]
            yield {
                "built": sum(token is not None for token in tokens),
                "shapes": [tuple(tensor.shape) for tensor in living.of(each["row_shapes"])],
                "graphs": sum(token is not None and token() is not None for token in tokens),
                "received": living.seen,
            }


class Living:
    """The tensors that are alive and were not when this was made. seen: copies of what was there at each look."""

    def __init__(self):
        self.known, self.seen = living_tensors(), []

    def of(self, row_shapes):
        """Those whose rows have one of these shapes."""
        gc.collect()
        known = {id(tensor) for tensor in [*self.known, *(tensor for look in self.seen for tensor in look)]}
        return [each for each in living_tensors() if id(each) not in known and tuple(each.shape[1:]) in row_shapes]

    def look_at(self, row_shape):
        """A hook that looks at the tensors with rows of this shape; None: it looks at nothing."""
        return lambda *_: self.seen.append([each.detach().clone() for each in self.of([row_shape])])


def token_of(output):
    """A weak reference to a token that lives as long as the graph of `output`; None where there is no graph."""
    if output.grad_fn is None:
        return None
    token = Token()
    output.grad_fn.register_hook(token.ignore)
    return weakref.ref(token)


def living_rows(known, row_shapes):
    """The tensors that are alive, are not among the known ones, and have rows of these shapes."""
    gc.collect()
    others = {id(tensor) for tensor in living_tensors()} - {id(tensor) for tensor in known}
    return [tensor for tensor in living_tensors() if id(tensor) in others and tuple(tensor.shape[1:]) in row_shapes]


def living_tensors():
    """Every tensor that something in this process holds."""
    return [each for each in gc.get_objects() if issubclass(type(each), Tensor)]
