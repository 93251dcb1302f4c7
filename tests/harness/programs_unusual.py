"""Right programs that few would write: threads beside operations, answers that nobody reads for a while, futures."""

import threading
import time

import torch
import torch.distributed as dist


class _Idle:
    """A thread that does nothing, as the helpers of a data loader or a progress bar."""

    def __enter__(self):
        self._end = threading.Event()
        threading.Thread(target=self._end.wait, daemon=True).start()

    def __exit__(self, *_):
        self._end.set()


def receives_from_any(here, *, threaded):
    """Rank 0 receives from any rank and answers; `threaded` ranks have a thread."""
    with _Idle() if here.rank in threaded else torch.no_grad():
        tensor = torch.zeros(3)
        if here.rank == 0:
            source = dist.recv(tensor)
            dist.send(tensor, source)
            return [source, tensor.tolist()]
        dist.send(torch.ones(3), 0)
        dist.recv(tensor, 0)
        return [0, tensor.tolist()]


def asks_and_sends_meanwhile(here, *, threaded):
    """Rank 0 asks whether a message has come, and sends only then what its peer waits for before it sends."""
    with _Idle() if here.rank in threaded else torch.no_grad():
        tensor = torch.zeros(3)
        if here.rank == 0:
            work, asked = dist.irecv(tensor, 1), 0
            while not work.is_completed():
                asked += 1
                if asked == 5:
                    dist.send(torch.ones(1), 1)
        else:
            dist.recv(torch.zeros(1), 0)
            dist.send(torch.ones(3), 0)
        return tensor.tolist()


def computes_meanwhile(here, *, count):
    """Rank 1 issues many operations, and computes while the other ranks issue theirs."""
    tensors = [torch.ones(2) * number for number in range(count)]
    if here.rank == 1:
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        here.mark("issued all")
        time.sleep(2.0)  # what counts is that it reads nothing
    else:
        here.hold(until="issued all", of=1)
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in works:
        work.wait()
    return [tensor[0].item() for tensor in tensors]


def waits_for_futures(here):
    """Futures of operations by torch's own functions for several."""
    tensors = [torch.full((2,), float(number)) for number in range(3)]
    futures = [dist.all_reduce(tensor, async_op=True).get_future() for tensor in tensors]
    doubled = [future.then(lambda future: future.value()[0] * 2) for future in futures]
    here.mark("asked")
    torch.futures.wait_all(futures)
    together = torch.futures.collect_all(doubled).then(lambda whole: [each.value().tolist() for each in whole.value()])
    return [tensor.tolist() for tensor in tensors], together.wait()


def futures_of_errors(here):
    """An error in one future is the error of all, also of torch's own futures."""
    failed = torch.futures.Future()
    failed.set_exception(ValueError("of a future"))
    work = dist.all_reduce(torch.ones(1), async_op=True)
    try:
        torch.futures.wait_all([work.get_future(), failed])
    except ValueError as error:
        return str(error)
    return "nothing"


def leaves_a_send_to_a_thread(here):
    """A thread waits for a send that nobody receives; the rank itself returns."""
    if here.rank == 0:
        waiting = threading.Thread(target=lambda: dist.send(torch.ones(1), 1), daemon=True)
        waiting.start()
        waiting.join(0.3)
    return True


def ends_late(here, *, seconds):
    time.sleep(seconds)
    return True
