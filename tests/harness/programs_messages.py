"""Programs that send messages, hold handles and use groups: each case yields its name and what the rank got."""

import time

import torch
import torch.distributed as dist

from grader.world.program import attempt

CASES = []


def case(function):
    CASES.append(function)
    return function


def all_cases(here):
    """Needs at least two ranks."""
    for function in CASES:
        yield function.__name__, function(here.rank, here.world_size)


def alone(here):
    """What a rank can do with itself."""
    group = dist.new_group([0])
    total = torch.ones(3)
    dist.all_reduce(total, group=group)
    yield total
    yield attempt(dist.send, torch.ones(1), 0)
    yield attempt(dist.irecv, torch.ones(1), 1)


@case
def ring(rank, size):
    """Even ranks send first; with two ranks the neighbours are one."""
    received = torch.empty(3)
    mine = torch.full((3,), float(rank))
    after, before = (rank + 1) % size, (rank - 1) % size
    if rank == 0:
        dist.send(mine, after)
        dist.recv(received, before)
    else:
        dist.recv(received, before)
        dist.send(mine, after)
    return received


@case
def batched_ring(rank, size):
    received = [torch.empty(3), torch.empty(2)]
    after, before = (rank + 1) % size, (rank - 1) % size
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.full((3,), float(rank)), after),
            dist.P2POp(dist.irecv, received[0], before),
            dist.P2POp(dist.isend, torch.full((2,), float(rank)), before, tag=1),
            dist.P2POp(dist.irecv, received[1], after, tag=1),
        ]
    )
    for work in works:
        work.wait()
    return received


@case
def tags_out_of_order(rank, size):
    """The receiver asks for the tags in the other order; the shapes differ, so a mix-up would show."""
    if rank == 0:
        handles = [dist.isend(torch.full((tag,), float(tag)), 1, tag=tag) for tag in (1, 2, 3)]
        for handle in handles:
            handle.wait()
        return None
    if rank > 1:
        return None
    received = {}
    for tag in (3, 1, 2):
        received[str(tag)] = torch.empty(tag)
        dist.recv(received[str(tag)], 0, tag=tag)
    return received


@case
def one_tag_in_order(rank, size):
    tensors = [torch.full((2,), float(number)) for number in range(4)]
    if rank == 0:
        for handle in [dist.isend(tensor, 1) for tensor in tensors]:
            handle.wait()
    elif rank == 1:
        for tensor in tensors:
            tensor.zero_()
            dist.recv(tensor, 0)
    return tensors


@case
def from_any_source(rank, size):
    """The last rank hears of every other, in the order of the ranks, whoever was first."""
    last = size - 1
    if rank != last:
        time.sleep(0.02 * (last - rank))
        dist.send(torch.tensor([float(rank)]), last)
        return None
    received = []
    for _ in range(last):
        tensor = torch.empty(1)
        received.append((dist.recv(tensor), tensor))
    return received


@case
def dtypes(rank, size):
    kinds = (torch.float16, torch.bfloat16, torch.bool, torch.int64, torch.complex64)
    sent = [torch.tensor([1, 0, 1]).to(kind) for kind in kinds] + [torch.tensor(7.0), torch.empty(0)]
    if rank == 0:
        for tensor in sent:
            dist.send(tensor, 1)
        return sent
    received = [torch.ones_like(tensor) for tensor in sent]
    if rank == 1:
        for tensor in received:
            dist.recv(tensor, 0)
    return received if rank == 1 else sent


@case
def objects(rank, size):
    if rank == 0:
        dist.send_object_list(["a", {"b": 2}], dst=1)
    received = [None, None]
    if rank == 1:
        source = dist.recv_object_list(received, src=0)
        return source, received
    return None


@case
def handles(rank, size):
    """What is in the buffers before wait, and after."""
    floats, whole, truth = torch.full((3,), float(rank)), torch.tensor([rank]), torch.tensor([False])
    works = [dist.all_reduce(tensor, async_op=True) for tensor in (floats, whole, truth)]
    before = [tensor.clone() for tensor in (floats, whole, truth)]
    for work in reversed(works):
        work.wait()
    works[0].wait()
    return before, [floats, whole, truth]


@case
def received_before_wait(rank, size):
    tensor = torch.full((2,), 5.0)
    if rank == 0:
        dist.send(tensor, 1)
        return tensor, tensor
    if rank > 1:
        return tensor, tensor
    tensor.zero_()
    work = dist.irecv(tensor, 0)
    before = tensor.clone()
    work.wait()
    return before, tensor


@case
def gathered_before_wait(rank, size):
    outputs = [torch.zeros(2) for _ in range(size)]
    mine = torch.full((2,), float(rank))
    work = dist.all_gather(outputs, mine, async_op=True)
    before = torch.stack(outputs)
    work.wait()
    return before, torch.stack(outputs), mine


@case
def polling(rank, size):
    """A rank that asks is answered when the others have come, or can come no further; never by chance."""
    tensor = torch.full((2,), float(rank))
    if rank == 0:
        time.sleep(0.1)
    work = dist.all_reduce(tensor, async_op=True)
    complete = work.is_completed()
    return complete, tensor


@case
def polling_in_vain(rank, size):
    """Rank 0 comes when rank 1 has asked in vain."""
    tensor = torch.full((2,), float(rank))
    if rank == 0:
        dist.recv(torch.empty(1), 1)
    work = dist.all_reduce(tensor, async_op=True)
    answers = []
    while not answers or not answers[-1]:
        answers.append(work.is_completed())
        if rank == 1 and len(answers) == 3:
            dist.send(torch.ones(1), 0)
    return answers, tensor


@case
def futures(rank, size):
    tensors = [torch.full((2,), float(rank)) for _ in range(4)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    whole = works[0].get_future().wait()[0]
    halved = works[1].get_future().then(lambda future: future.value()[0] / 2)
    chained = works[2].get_future().then(lambda future: future.wait()[0] + 1).then(lambda future: future.value() * 2)
    asked = works[3].get_future()
    while not asked.done():
        pass
    failing = works[3].get_future().then(lambda future: future.value()[7])
    return whole, halved.wait(), chained.wait(), asked.value()[0], works[3].result()[0], attempt(failing.wait)


@case
def groups(rank, size):
    """Every rank makes every group; only members use them."""
    every = {}
    for first in range(size):
        every[first] = dist.new_group([first, (first + 1) % size])
    got = {}
    for first, group in every.items():
        if rank in (first, (first + 1) % size):
            tensor = torch.tensor([float(rank)])
            dist.all_reduce(tensor, group=group)
            dist.broadcast(tensor, src=first, group=group)
            got[str(first)] = tensor
    return got


@case
def twins(rank, size):
    """Two groups of the same ranks: what is in flight in one does not meet the other."""
    one, other = dist.new_group(), dist.new_group()
    a, b = torch.full((2,), float(rank)), torch.full((3,), float(rank))
    if rank == 0:
        works = [dist.all_reduce(a, group=one, async_op=True), dist.all_reduce(b, group=other, async_op=True)]
    else:
        works = [dist.all_reduce(b, group=other, async_op=True), dist.all_reduce(a, group=one, async_op=True)]
    for work in works:
        work.wait()
    return a, b


@case
def local_synchronization(rank, size):
    """Only the members come."""
    if rank > 1:
        return None
    group = dist.new_group([0, 1], use_local_synchronization=True)
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=group)
    return tensor


@case
def messages_in_a_group(rank, size):
    """Ranks of the world name the peers; the group has them in another order."""
    group = dist.new_group([size - 1, 0], sort_ranks=False)
    tensor = torch.full((2,), float(rank))
    if rank == 0:
        dist.send(tensor, size - 1, group=group)
    if rank == size - 1:
        dist.recv(tensor, 0, group=group)
        return tensor, dist.get_group_rank(group, 0), dist.get_process_group_ranks(group)
    return None


@case
def again(rank, size):
    """The groups are ended, and the world joins again."""
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.PrefixStore("again", store), rank=rank, world_size=size)
    ranks = [1, 0] if size == 2 else [1, 2]
    group = dist.new_group(ranks)
    tensor = torch.tensor([float(rank)])
    if rank in ranks:
        dist.all_reduce(tensor, group=group)
    return tensor
