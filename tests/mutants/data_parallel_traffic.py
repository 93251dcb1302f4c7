"""Mutants of data_parallel.py that give right values, and send something else than the contract says."""

from tests.mutants.data_parallel_texts import ACCUMULATION, ALL_TENSORS, FLAT_STEP, NAIVE_STEP, NO_SYNC
from tests.mutants.mutant import Edit, Mutant

OWN_BUCKETS = "        self._overlap = _Overlap(self.buckets, self._no_sync, group)\n"
IN_NO_SYNC = "                if index < len(self._issued):\n"
SEEN = "tensor.numel() == 0 or memory in sent"

MUTANTS: list[Mutant] = [
    Mutant(
        "naive_sends_all_at_once",
        "NaiveDDP flattens all gradients into one all-reduce.",
        (Edit(NAIVE_STEP, "        _finish(_issue(self._trainable, self._group), self._group)\n"),),
        ("data_parallel.naive_gradients",),
    ),
    Mutant(
        "flat_sends_one_by_one",
        "FlatDDP has one all-reduce for each parameter.",
        (
            Edit(
                FLAT_STEP,
                """\
        for parameters in alike.values():
            for parameter in parameters:
                _finish(_issue([parameter], self._group), self._group)
""",
            ),
        ),
        ("data_parallel.flat_gradients",),
    ),
    Mutant(
        "flat_sends_a_list_of_who_has_what",
        "FlatDDP also tells which gradients a rank has.",
        (
            Edit(
                FLAT_STEP,
                FLAT_STEP.replace(
                    "            _finish",
                    "            have = torch.tensor([float(p.grad is not None) for p in parameters])\n"
                    "            dist.all_reduce(have, group=self._group)\n            _finish",
                ),
            ),
        ),
        ("data_parallel.flat_gradients",),
    ),
    Mutant(
        "overlapped_in_the_order_of_the_parameters",
        "OverlappedDDP issues the first parameter's all-reduce first, which backward computes last.",
        (
            Edit(
                "[[parameter] for parameter in reversed(self._trainable)]",
                "[[parameter] for parameter in self._trainable]",
            ),
        ),
        ("data_parallel.overlapped_gradients", "data_parallel.overlapped_in_flight"),
    ),
    Mutant(
        "buckets_are_sent_one_by_one",
        "BucketedDDP plans buckets, and has one all-reduce for each parameter.",
        (Edit(OWN_BUCKETS, OWN_BUCKETS.replace("self.buckets", "[[p] for bucket in self.buckets for p in bucket]")),),
        ("data_parallel.bucketed_gradients", "data_parallel.bucketed_in_flight"),
    ),
    Mutant(
        "buckets_are_sent_all_at_once",
        "BucketedDDP plans buckets, and has one all-reduce for all.",
        (Edit(OWN_BUCKETS, OWN_BUCKETS.replace("self.buckets", "[sum(self.buckets, [])]")),),
        ("data_parallel.bucketed_gradients", "data_parallel.bucketed_in_flight"),
    ),
    Mutant(
        "buckets_are_sent_in_reverse",
        "BucketedDDP begins with the last bucket.",
        (Edit(OWN_BUCKETS, OWN_BUCKETS.replace("self.buckets", "self.buckets[::-1]")),),
        ("data_parallel.bucketed_gradients", "data_parallel.bucketed_in_flight"),
    ),
    Mutant(
        "sent_inside_no_sync_and_dropped",
        "Inside no_sync() the hooks send, and do not write what comes.",
        (Edit(IN_NO_SYNC, "                _issue(self._buckets[index], self._group).work.wait()\n" + IN_NO_SYNC),),
        ("data_parallel.overlapped_accumulation", "data_parallel.bucketed_accumulation"),
        mistake=35,
    ),
    Mutant(
        "no_sync_begins_with_a_barrier",
        "The ranks meet at the beginning of no_sync().",
        (Edit(NO_SYNC, "        dist.barrier(group=self._group)\n" + NO_SYNC),),
        ACCUMULATION,
    ),
    Mutant(
        "barrier_of_the_whole_world",
        "After the broadcast all ranks of the world meet, not those of the group.",
        (
            Edit(
                "        broadcast_module(module, group=group)\n",
                "        broadcast_module(module, group=group)\n        dist.barrier()\n",
            ),
        ),
        ("data_parallel.groups", "data_parallel.flat_no_sync", "data_parallel.overlapped_missing_gradients"),
    ),
    Mutant(
        "tied_weights_are_broadcast_twice",
        "Every name of a parameter is sent.",
        (
            Edit(ALL_TENSORS, "[*dict(module.named_parameters(remove_duplicate=False)).values(), *module.buffers()]"),
            Edit(SEEN, "tensor.numel() == 0"),
        ),
        ("data_parallel.broadcast_module", "data_parallel.broadcast_module_layouts"),
    ),
    Mutant(
        "views_are_broadcast_beside_what_they_view",
        "A buffer that is a view of a whole parameter is sent too.",
        (Edit(SEEN, "tensor.numel() == 0"),),
        ("data_parallel.broadcast_module_layouts",),
    ),
]
