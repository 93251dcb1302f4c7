"""Programs that call data_parallel.py: calls and arguments only."""

import gc

import torch
import torch.distributed as dist
from torch import nn

from grader.world.program import attempt, shares_memory


def sum_over_ranks(here):
    """A plain all-reduce: a message that should not have been sent would meet it."""
    total = torch.tensor([here.rank + 1.0])
    dist.all_reduce(total)
    return total


def shard_batch(here, *, batches, calls):
    """Yields for each call the rows of a whole batch, which is passed as a transposed view where it says so."""
    for batch, call in zip(batches, calls, strict=True):
        argument = batch.t().contiguous().t() if call["transposed"] else batch
        result = attempt(here.submission.shard_batch, argument, call["rank"], call["world_size"])
        yield {"result": result, "input": argument}


def loss_scale(here, *, rows):
    """Yields the scale for each of this rank's numbers of rows."""
    for local_rows in rows:
        outcome = attempt(here.submission.loss_scale, local_rows)
        yield {"outcome": outcome, "sum": sum_over_ranks(here)}


def plan_buckets(here, *, calls):
    """Yields the plan for tensors of these shapes, dtypes and devices, which no rank ever fills."""
    for call in calls:
        parameters = [
            nn.Parameter(torch.empty(shape, dtype=dtype, device=device), requires_grad=dtype.is_floating_point)
            for shape, dtype, device in call["tensors"]
        ]
        yield attempt(here.submission.plan_buckets, parameters, call["bucket_bytes"])


class Inner(nn.Module):
    """A module inside the module: a frozen parameter, and buffers of which one is not in the state_dict."""

    def __init__(self, tensors):
        super().__init__()
        self.frozen = nn.Parameter(tensors["inner.frozen"], requires_grad=False)
        self.register_buffer("mask", tensors["inner.mask"])
        self.register_buffer("cache", tensors["inner.cache"], persistent=False)


class Outer(nn.Module):
    """Parameters and buffers of several dtypes and shapes; `tied` is `weight` under a second name."""

    def __init__(self, tensors):
        super().__init__()
        self.weight = nn.Parameter(tensors["weight"])
        self.tied = self.weight
        self.gain = nn.Parameter(tensors["gain"])
        self.register_buffer("count", tensors["count"])
        self.inner = Inner(tensors)

    def tensors(self):
        """By name: every parameter and buffer."""
        return dict(self.named_parameters()) | dict(self.named_buffers())


def broadcast_module(here, *, sources, tensors):
    """Yields for each src the tensors afterwards, and whether they are the objects and the memory of before."""
    for src, own in zip(sources, tensors, strict=True):
        module = Outer(own)
        before = module.tensors()
        memory = {name: tensor.data_ptr() for name, tensor in before.items()}
        wanted = {name: tensor.requires_grad for name, tensor in before.items()}
        outcome = attempt(here.submission.broadcast_module, module, src)
        after = module.tensors()
        yield {
            "outcome": outcome,
            "tensors": {name: tensor.detach() for name, tensor in after.items()},
            "in place": {
                name: after[name] is before[name] and after[name].data_ptr() == memory[name] for name in before
            },
            "requires_grad": {name: tensor.requires_grad for name, tensor in after.items()} == wanted,
            "tied": module.tied is module.weight and shares_memory(module.tied, module.weight),
            "sum": sum_over_ranks(here),
        }


class Affine(nn.Module):
    """x · weight + count, returned beside what else was passed."""

    def __init__(self, weight, count):
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.register_buffer("count", count)

    def forward(self, x, *, label):
        return {"y": x * self.weight + self.count, "label": label}


def wrap(here, *, weight, count, later_count, x):
    """Wraps a module in NaiveDDP and yields what can be seen of it, in the order of `STAGES` of the check."""
    submission = here.submission
    module = Affine(weight, count)
    model = submission.NaiveDDP(module)
    yield {"weight": module.weight, "count": module.count}
    if not isinstance(model, nn.Module):  # what follows could not be asked of it
        yield from [None] * 5
        return
    yield {
        "is a DDP": isinstance(model, submission.DDP),
        "module is the module": model.module is module,
        "keys": list(model.state_dict()),
        "parameters": [name for name, _ in model.named_parameters()],
    }
    try:
        submission.DDP(module)
        refused = False
    except Exception:  # of any kind: that it cannot be made is all
        refused = True
    yield refused
    seen = []
    module.register_forward_hook(lambda *_: seen.append("forward hook"))
    result = model(x, label="kept")
    yield {"hooks": list(seen), "y": result["y"].detach(), "label": result["label"]}
    model.eval()
    evaluating = module.training
    model.train()
    model.to(torch.float64)
    yield {"in eval": evaluating, "in train": module.training, "dtypes": [module.weight.dtype, module.count.dtype]}
    model.to(torch.float32)
    module.count.copy_(later_count)
    model(x, label="")["y"].sum().backward()
    attempt(model.synchronize_gradients)  # whether it is right is another check's question
    yield module.count


class Terms(nn.Module):
    """The sum over parameters of (parameter · coefficient): each gradient is the coefficient of this call."""

    def __init__(self, session):
        super().__init__()
        for name, value in session["parameters"].items():
            own = value.t().contiguous().t() if name in session["transposed"] else value.clone()
            self.register_parameter(name, nn.Parameter(own, requires_grad=name not in session["frozen"]))
        for name, other in session["tied"].items():
            self.register_parameter(name, getattr(self, other))

    def forward(self, coefficients):
        terms = [(getattr(self, name) * factor).sum().double() for name, factor in coefficients.items()]
        return torch.stack(terms).sum()


def named_buckets(model, parameters):
    """The names of the parameters in `model.buckets`; None where it has no such lists."""
    buckets = getattr(model, "buckets", None)
    if not isinstance(buckets, list | tuple) or not all(isinstance(bucket, list | tuple) for bucket in buckets):
        return None
    names = {id(parameter): name for name, parameter in parameters.items()}
    return [[names.get(id(parameter), "?") for parameter in bucket] for bucket in buckets]


class LeaveEarlyError(Exception):
    """Raised by a script inside `no_sync()`, to leave it."""


class Life:
    """A module, its wrapper, and what a script does with them. See the steps in oracles/sessions.py."""

    def __init__(self, here, wrapper, session, group):
        self.here = here
        self.make = lambda: getattr(here.submission, wrapper)(self.module, **session["options"], group=group)
        self.module = Terms(session)
        self.parameters = dict(self.module.named_parameters())
        self.model = self.make()
        self.loss = None

    def follow(self, steps):
        """Does the steps one after the other, and marks where each begins and ends; yields where one of them looks."""
        for step in steps:
            self.here.mark(step["do"])
            match step["do"]:
                case "backward":
                    self.loss = self.model(step["coefficients"])
                    self.loss.backward()
                case "refused backward":
                    if not step["same_graph"]:
                        self.loss = self.model(step["coefficients"])
                    yield attempt(self.loss.backward)
                    self.here.excuse_handles()  # what the first backward has sent is nobody's any more
                case "retaining backward":
                    self.loss = self.model(step["coefficients"])
                    self.loss.backward(retain_graph=True)
                case "backward of two calls":
                    (self.model(step["coefficients"]) + self.model(step["more"])).backward()
                case "synchronize":
                    self.model.synchronize_gradients()
                case "refused synchronize":
                    yield attempt(self.model.synchronize_gradients)
                case "clear":
                    self.model.zero_grad(set_to_none=step["set_to_none"])
                case "write":
                    for name, gradient in step["gradients"].items():
                        self.parameters[name].grad = gradient.clone()
                case "move":
                    for name, amount in step["amounts"].items():
                        self.parameters[name].data += amount
                case "require":
                    for name in step["names"]:
                        self.parameters[name].requires_grad_(step["value"])
                case "no_sync":
                    yield from self.without_sync(step)
                case "wrap again":
                    self.model = self.loss = None
                    gc.collect()
                    self.model = self.make()
                case "look":
                    yield {
                        "gradients": {name: parameter.grad for name, parameter in self.parameters.items()},
                        "parameters": {name: parameter.detach() for name, parameter in self.parameters.items()},
                        "buckets": named_buckets(self.model, self.parameters),
                    }
            self.here.mark(f"end of {step['do']}")

    def without_sync(self, step):
        """The inner steps inside `no_sync()`, which an exception leaves where the step says so."""
        try:
            with self.model.no_sync():
                yield from self.follow(step["steps"])
                if step["interrupted"]:
                    raise LeaveEarlyError
        except LeaveEarlyError:
            pass


def follow(here, *, wrapper, sessions):
    """Lives through each session; yields at each look. A rank outside a session's group yields what making raised."""
    for session in sessions:
        here.mark("session")
        group = None if session["group"] is None else dist.new_group(session["group"])
        if session["group"] is not None and here.rank not in session["group"]:
            outcome = attempt(Life, here, wrapper, session, group)
            yield from [{"raised": outcome.get("raised", [])} for _ in range(session["looks"])]
        else:
            yield from Life(here, wrapper, session, group).follow(session["script"])


class Network(nn.Module):
    """Linear layers with tanh between them; the output is multiplied by a buffer."""

    def __init__(self, weights, biases, output_scale):
        super().__init__()
        layers = []
        for weight, bias in zip(weights, biases, strict=True):
            linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
            linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
            layers += [linear, nn.Tanh()]
        self.layers = nn.Sequential(*layers[:-1])
        self.register_buffer("output_scale", output_scale)

    def forward(self, x):
        return self.layers(x) * self.output_scale


def train(here, *, wrapper, options, initial, shards, scale, optimizer):
    """Trains with AdamW on this rank's rows, one batch a step; yields the parameters after each step."""
    model = getattr(here.submission, wrapper)(Network(**initial), **options)
    adam = torch.optim.AdamW(model.parameters(), **optimizer)
    for x, y in shards:
        adam.zero_grad()
        loss = scale * nn.functional.mse_loss(model(x), y, reduction="sum")
        loss.backward()
        model.synchronize_gradients()
        adam.step()
        yield [parameter.detach() for parameter in model.parameters()]


def buckets(here, *, parameters, frozen, bucket_bytes):
    """Yields for each size the names in `BucketedDDP.buckets`, and those of the submission's own plan."""
    for size in bucket_bytes:
        module = Terms({"parameters": parameters, "frozen": frozen, "transposed": [], "tied": {}})
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        model = here.submission.BucketedDDP(module, size)
        trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
        plan = here.submission.plan_buckets(trainable, size)
        yield {
            "buckets": [[names.get(id(parameter), "?") for parameter in bucket] for bucket in model.buckets],
            "plan": [[names[id(trainable[index])] for index in bucket] for bucket in plan],
        }


def refuse_bucket_bytes(here, *, weight, bucket_bytes):
    """Yields what making a BucketedDDP with each size raised, the weight afterwards, and an all-reduce's result."""
    for size in bucket_bytes:
        module = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        module.weight = nn.Parameter(weight.clone())
        outcome = attempt(here.submission.BucketedDDP, module, size)
        yield {"raised": outcome.get("raised", []), "weight": module.weight, "sum": sum_over_ranks(here)}
