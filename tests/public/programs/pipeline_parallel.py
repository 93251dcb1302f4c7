"""Programs that call pipeline_parallel.py: calls and arguments only."""

import gc
import weakref

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from grader.given import Action, Kind
from grader.world.program import attempt, message_of, shares_memory


def split_layers(here, *, calls):
    """Yields for each (num_layers, num_stages) the list, with [start, stop, step] in place of each range."""
    for call in calls:
        outcome = attempt(here.submission.split_layers, *call)
        yield {**outcome, "value": plain_list(outcome.get("value"), plain_range)}


def plain_list(value, plain):
    """A list entry by entry; anything else as it is."""
    return [plain(entry) for entry in value] if type(value) is list else value


def plain_range(value):
    """{"range": [start, stop, step]} of a range; anything else as it is."""
    return {"range": [value.start, value.stop, value.step]} if type(value) is range else value


def split_microbatches(here, *, batches, calls):
    """Yields for each call the pieces, which of them are views, and the batch afterwards."""
    for batch, call in zip(batches, calls, strict=True):
        argument = laid_out(batch, call["transposed"])
        outcome = attempt(here.submission.split_microbatches, argument, call["num_microbatches"])
        pieces = outcome["value"] if isinstance(outcome.get("value"), list) else []
        views = [isinstance(piece, Tensor) and shares_memory(piece, argument) for piece in pieces]
        yield {"outcome": outcome, "views": views, "batch": argument}


def laid_out(tensor, transposed):
    """The same numbers, in memory in another order where `transposed` says so."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if transposed else tensor


def gpipe_schedule(here, *, calls):
    """Yields for each (stage, num_stages, num_microbatches) the actions in their short form, "ra0" or "F1"."""
    for call in calls:
        outcome = attempt(here.submission.gpipe_schedule, *call)
        yield {**outcome, "value": plain_list(outcome.get("value"), plain_action)}


def plain_action(value):
    """The short form of an Action of a Kind and a number; anything else as it is, one level deep."""
    if type(value) is Action and type(value.kind) is Kind and type(value.microbatch) is int:
        return f"{value.kind.value}{value.microbatch}"
    return {"no action": [value.kind, value.microbatch] if type(value) is Action else value}


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


def run(here, *, pipelines):
    """Yields what became of each call of each pipeline, then the ranks that this one hears of."""
    for pipeline in pipelines:
        group = None if pipeline["group"] is None else dist.new_group(pipeline["group"])
        if pipeline["group"] is not None and here.rank not in pipeline["group"]:
            outcome = attempt(made, here, pipeline, group)
            yield from [{"raised": outcome.get("raised", [])} for _ in pipeline["calls"]]
            continue
        layers, stage = made(here, pipeline, group)
        for parameter, gradient in zip(layers.parameters(), pipeline["gradients"], strict=True):
            parameter.grad = None if gradient is None else gradient.clone()
        sizes = []
        layers[-1].register_forward_hook(lambda _, __, output, sizes=sizes: sizes.append(len(output)))
        for each in pipeline["calls"]:
            sizes.clear()
            batch = None if each["batch"] is None else laid_out(each["batch"], each["transposed"])
            losses = []
            result = call(stage, each, batch, losses)
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
    """Yields after each call how many of its graphs are left, and the shapes of its activations that are left."""
    for pipeline in pipelines:
        layers, stage = made(here, pipeline)
        tokens = []
        layers[-1].register_forward_hook(lambda _, __, output, tokens=tokens: tokens.append(token_of(output)))
        for each in pipeline["calls"]:
            tokens.clear()
            gc.collect()
            known = living_tensors()
            call(stage, each, each["batch"], [])
            gc.collect()
            known += [parameter.grad for parameter in layers.parameters()]
            others = {id(tensor) for tensor in living_tensors()} - {id(tensor) for tensor in known}
            shapes = [tuple(tensor.shape) for tensor in living_tensors() if id(tensor) in others]
            yield {
                "graphs": sum(token is not None and token() is not None for token in tokens),
                "shapes": [shape for shape in shapes if shape[1:] in each["row_shapes"]],
            }


def token_of(output):
    """A weak reference to a token that lives as long as the graph of `output`; None where there is no graph."""
    if output.grad_fn is None:
        return None
    token = Token()
    output.grad_fn.register_hook(token.ignore)
    return weakref.ref(token)


def living_tensors():
    """Every tensor that something in this process holds."""
    return [each for each in gc.get_objects() if issubclass(type(each), Tensor)]
