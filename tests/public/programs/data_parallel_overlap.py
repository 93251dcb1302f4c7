"""The program that watches a wrapper during backward: calls and arguments only."""

import torch
from torch import nn


class Chain(nn.Module):
    """Layers of a weight and tanh, one after the other: backward computes one gradient after the other."""

    def __init__(self, weights):
        super().__init__()
        self.weights = nn.ParameterList(weights)

    def forward(self, x):
        for weight in self.weights:
            x = torch.tanh(x @ weight)
        return x


class Watch:
    """Marks when backward has computed each gradient: by hooks that are there before the wrapper is."""

    def __init__(self, here, module):
        self.here = here
        self.step = 0
        for number, weight in enumerate(module.weights):
            weight.register_post_accumulate_grad_hook(lambda _, number=number: self.computed(number))

    def name(self, number):
        """What follows "rank 0 has"."""
        layer = f"layer {number + 1}" if number else "its first layer"
        return f"computed the gradient of {layer} in step {self.step}"

    def computed(self, number):
        """Called by backward."""
        self.here.mark(self.name(number))


def numbered_buckets(model, module):
    """The numbers of the layers in `model.buckets`; None where it has no such lists."""
    buckets = getattr(model, "buckets", None)
    if not isinstance(buckets, list | tuple) or not all(isinstance(bucket, list | tuple) for bucket in buckets):
        return None
    numbers = {id(weight): number for number, weight in enumerate(module.weights)}
    return [[numbers.get(id(weight), -1) for weight in bucket] for bucket in buckets]


def in_flight(here, *, wrapper, options, weights, x, upstream, leaders):
    """Does a step for each leader: no other rank begins its backward before the leader has come to its first layer.

    None is no leader. Yields after each step the numbers of the layers in each bucket of a BucketedDDP.
    """
    module = Chain(weights)
    watch = Watch(here, module)
    model = getattr(here.submission, wrapper)(module, **options)
    for leader in leaders:
        watch.step += 1
        module.zero_grad()
        loss = (model(x) * upstream).sum()
        if leader not in (None, here.rank):
            here.hold(until=watch.name(0), of=leader)
        here.mark("backward begins")
        loss.backward()
        here.mark("backward has ended")
        model.synchronize_gradients()
        yield numbered_buckets(model, module) if wrapper == "BucketedDDP" else []
