"""Programs that call tensor_parallel.py: calls and arguments only."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from grader.world.program import attempt, shares_memory


def shard(here, *, calls, refused):
    """Yields the result of each shard_columns(weight, rank, world_size), or what it raised where it is refused."""
    for call, is_refused in zip(calls, refused, strict=True):
        weight = laid_out(call["weight"], call["layout"])
        own_columns = partial(here.submission.shard_columns, weight, call["rank"], call["world_size"])
        if is_refused:
            yield attempt(own_columns)
            continue
        result = own_columns()
        new = isinstance(result, Tensor) and not shares_memory(result, weight)
        yield {"value": result, "input": weight, "new": new}


def use(here, *, function, uses):
    """Yields for each use the result, the gradient that reaches the input, and what the call must not change.

    beside: the result is added to another tensor, which gets the same gradient; else that tensor's is None.
    alone: "forward" or "backward": rank 0 goes through it before the others start it.
    refused: the call is expected to raise on every rank; then what it raised, and an all-reduce after it.
    Marks the ends of forward and backward.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not written holds NaN
    conjugate = getattr(here.submission, function)
    for number, each in enumerate(uses):
        keywords, member = group_of(here, each["group"])
        local = laid_out(each["input"], each["layout"]).requires_grad_()
        if each["refused"] or not member:
            outcome = attempt(conjugate, local, *each["arguments"], **keywords)
            here.mark(f"raised number {number}")
            yield {**outcome, "sum": sum_over_ranks(here) if each["refused"] else None}
            continue
        with first_alone(here, f"computed result {number}", asked=each["alone"] == "forward"):
            result = conjugate(local, *each["arguments"], **keywords)
        upstream = laid_out(each["upstream"], each["layout"])
        other = torch.zeros_like(upstream, requires_grad=True)
        total = result + other if each["beside"] and fits(result, upstream) else result
        with first_alone(here, f"computed gradient {number}", asked=each["alone"] == "backward"):
            found = gradients(total, [local, other], upstream)
        yield {
            "result": result,
            "gradient": found[0],
            "beside": found[1],
            "input": local,
            "new": isinstance(result, Tensor) and not shares_memory(result, local),
        }


def construct(here, *, layers):
    """Makes layers; yields the names of the parameters, the parameters, and whether they are nn.Parameter.

    seed: where it is a number, torch's random numbers start anew from it.
    """
    for each in layers:
        keywords, member = group_of(here, each["group"])
        if each["seed"] is not None:
            torch.manual_seed(each["seed"])
        make = partial(here.submission.ColumnParallelLinear, *each["sizes"], **each["options"], **keywords)
        if not member:
            yield attempt(make)
            continue
        layer = make()
        yield {
            "names": sorted(name for name, _ in layer.named_parameters()),
            "weight": layer.weight,
            "bias": layer.bias,
            "is a module": isinstance(layer, nn.Module),
        }


def load_master(here, *, loads):
    """Makes one layer for each of `loads` and loads masters one after the other; yields after each load.

    Marks the beginning and the end of each load; rank 0 goes through it before the others start it.
    """
    for number, load in enumerate(loads):
        layer = here.submission.ColumnParallelLinear(*load["sizes"], **load["options"])
        before = [layer.weight, layer.bias]
        for turn, master in enumerate(load["masters"]):
            layer.to(master["weight"].dtype)
            given = [laid_out(master[name], load["layout"]) for name in ("weight", "bias") if master[name] is not None]
            for one in given:
                one.requires_grad_(load["layout"] == "transposed")  # as nn.Linear(...).weight.t() does
            load_given = partial(layer.load_master, *given)
            here.mark(f"come to load {number}.{turn}")
            with first_alone(here, f"loaded master {number}.{turn}"):
                outcome = attempt(load_given) if master["refused"] else {"value": load_given()}
            own = [parameter for parameter in (layer.weight, layer.bias) if parameter is not None]
            yield {
                **outcome,
                "weight": layer.weight,
                "bias": layer.bias,
                "same objects": layer.weight is before[0] and layer.bias is before[1],
                "own memory": not any(shares_memory(parameter, one) for parameter in own for one in given),
                "masters": given,
                "sum": sum_over_ranks(here),
            }


def linear(here, *, layers):
    """Yields output and gradients of a ColumnParallelLinear that holds these columns.

    Marks the ends of the constructor, of forward and of backward.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)
    for each in layers:
        keywords, member = group_of(here, each["group"])
        make = partial(here.submission.ColumnParallelLinear, *each["sizes"], **each["options"], **keywords)
        if not member:
            yield attempt(make)
            continue
        layer = make().to(each["x"].dtype)
        fill([layer], each["weights"], each["biases"])
        x = laid_out(each["x"], each["layout"]).requires_grad_()
        here.mark("made a layer")
        y = layer(x)
        here.mark("computed its output")
        biases = [] if layer.bias is None else [layer.bias]
        found = gradients(y, [x, layer.weight, *biases], each["upstream"])
        here.mark("computed its gradients")
        yield {"y": y, "x": found[0], "weight": found[1:2], "bias": found[2:], "input": x}


def network(here, *, layers):
    """Yields output and gradients of a ColumnParallelMLP that holds these columns, and how it is made.

    activation: a name in torch.nn.functional; None leaves the default. widths: of what the activation was given.
    Marks the ends of the constructor, of forward and of backward; with an activation, also whenever it was applied
    and whenever its result got a gradient.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)
    for each in layers:
        keywords, member = group_of(here, each["group"])
        widths = []
        if each["activation"] is not None:
            keywords["activation"] = noting(here, getattr(F, each["activation"]), widths)
        make = partial(here.submission.ColumnParallelMLP, each["sizes"], **each["options"], **keywords)
        if not member:
            yield attempt(make)
            continue
        model = make().to(each["x"].dtype)
        own = list(model.layers)
        fill(own, each["weights"], each["biases"])
        x = laid_out(each["x"], each["layout"]).requires_grad_()
        here.mark("made a network")
        y = model(x)
        here.mark("computed its output")
        weights = [layer.weight for layer in own]
        biases = [layer.bias for layer in own if layer.bias is not None]
        found = gradients(y, [x, *weights, *biases], each["upstream"])
        here.mark("computed its gradients")
        yield {
            "y": y,
            "x": found[0],
            "weight": found[1 : 1 + len(weights)],
            "bias": found[1 + len(weights) :],
            "input": x,
            "layers": isinstance(model.layers, nn.ModuleList)
            and all(isinstance(layer, here.submission.ColumnParallelLinear) for layer in own),
            "widths": widths,
        }


def train(here, *, sizes, weights, biases, batches, optimizer):
    """Trains a ColumnParallelMLP with AdamW, every rank on the same rows; yields after each step."""
    model = here.submission.ColumnParallelMLP(sizes).to(weights[0].dtype)
    layers = list(model.layers)
    fill(layers, weights, biases)
    adam = torch.optim.AdamW(model.parameters(), **optimizer)
    for x, target in batches:
        adam.zero_grad()
        loss = F.mse_loss(model(x), target)
        if loss.requires_grad:
            loss.backward()
        adam.step()
        yield {
            "loss": loss,
            "weight": [layer.weight.detach() for layer in layers],
            "bias": [layer.bias.detach() for layer in layers],
        }


def gradients(result, inputs, upstream):
    """The gradients of the inputs, None where none arrives, from `upstream`, that of the result."""
    if not fits(result, upstream) or not result.requires_grad:
        return [None for _ in inputs]
    return list(torch.autograd.grad(result, inputs, upstream, allow_unused=True))


def fits(result, upstream):
    """Whether `upstream` can be the gradient of what a submission returned."""
    return isinstance(result, Tensor) and result.shape == upstream.shape and result.dtype == upstream.dtype


def fill(layers, weights, biases):
    """Writes this rank's columns into the parameters of the layers. No bias: an empty list."""
    if len(layers) != len(weights):
        raise ValueError(f"there are {len(layers)} layers; expected {len(weights)}")
    with torch.no_grad():
        for number, layer in enumerate(layers):
            columns = {"weight": weights[number], "bias": biases[number] if biases else None}
            for name, own in columns.items():
                parameter = getattr(layer, name)
                have, want = (None if one is None else tuple(one.shape) for one in (parameter, own))
                if have != want:
                    raise ValueError(f"the {name} of layer {number} has shape {have} on this rank; expected {want}")
                if own is not None:
                    parameter.copy_(own)


def group_of(here, ranks):
    """The keywords that name a new group of these ranks (None: the default group), and whether this rank is in it."""
    if ranks is None:
        return {}, True
    return {"group": dist.new_group(ranks)}, here.rank in ranks


def noting(here, activation, widths):
    """The activation; it writes down the last dimension of what it is given, and marks when it is applied."""

    def noted(h):
        widths.append(h.shape[-1])
        result = activation(h)
        if result.requires_grad:
            result.register_hook(lambda _: here.mark("computed the gradient of an activation"))
        here.mark("applied an activation")
        return result

    return noted


@contextmanager
def first_alone(here, done, *, asked=True):
    """The block, which ends with the mark `done`. asked: the other ranks start it when rank 0 is done.

    So rank 0 can wait for no other in it: an operation there would never be complete.
    """
    if asked and here.rank:
        here.hold(until=done, of=0)
    yield
    here.mark(done)


def sum_over_ranks(here):
    """An all-reduce after calls that must send nothing: a stray message would show."""
    ranks = torch.tensor(here.rank + 1)
    dist.all_reduce(ranks)
    return int(ranks)


def laid_out(value, layout):
    """The same numbers, in memory as `layout` says: "plain", "strided" or "transposed"."""
    if layout == "strided":
        view = value.new_zeros((*value.shape, 2))[..., 1]
    elif layout == "transposed":
        view = value.new_empty(value.shape[::-1]).permute(*reversed(range(value.dim())))
    else:
        return value
    return view.copy_(value)
