"""Mutants of the wrappers of data_parallel.py: how they are made, and the mean."""

from tests.mutants.data_parallel_texts import DIVIDE, FLAT_LIST, GRADIENT, GRADIENTS, REDUCE, TRAINING, WRITE
from tests.mutants.mutant import Edit, Mutant

MUTANTS: list[Mutant] = [
    Mutant(
        "wrapper_is_no_module",
        "The wrapper does not derive from nn.Module.",
        (Edit("class DDP(nn.Module, ABC):", "class DDP(ABC):"),),
        ("data_parallel.wrapper", "data_parallel.flat_training"),
        mistake=41,
    ),
    Mutant(
        "parameters_not_broadcast",
        "Each rank keeps the weights that it began with.",
        (Edit("        broadcast_module(module, group=group)\n", ""),),
        ("data_parallel.wrapper", *TRAINING),
        mistake=23,
    ),
    Mutant(
        "parameters_of_the_last_rank",
        "Construction broadcasts from the last rank of the group.",
        (
            Edit(
                "        broadcast_module(module, group=group)\n",
                "        broadcast_module(module, dist.get_world_size(group) - 1, group=group)\n",
            ),
        ),
        ("data_parallel.wrapper", "data_parallel.groups", "data_parallel.flat_no_sync"),
    ),
    Mutant(
        "buffers_broadcast_in_forward",
        "Every forward broadcasts the module again, buffers too.",
        (
            Edit(
                "        return self.module(*args, **kwargs)\n",
                "        broadcast_module(self.module, group=self._group)\n"
                "        return self.module(*args, **kwargs)\n",
            ),
        ),
        ("data_parallel.wrapper",),
    ),
    Mutant(
        "forward_skips_the_hooks",
        "module.forward is called in place of the module.",
        (Edit("return self.module(*args, **kwargs)", "return self.module.forward(*args, **kwargs)"),),
        ("data_parallel.wrapper",),
    ),
    Mutant(
        "module_kept_out_of_the_tree",
        "The module is kept where nn.Module does not see it: no parameters, no state_dict.",
        (Edit("        self.module = module\n", "        self.__dict__['module'] = module\n"),),
        ("data_parallel.wrapper", "data_parallel.flat_training"),
        mistake=41,
    ),
    Mutant(
        "base_class_can_be_made",
        "DDP is no longer abstract.",
        (Edit("class DDP(nn.Module, ABC):", "class DDP(nn.Module):"),),
        ("data_parallel.wrapper",),
    ),
    Mutant(
        "sum_without_average",
        "The gradients are summed and not divided by W.",
        (Edit(DIVIDE, ""),),
        (*GRADIENTS, "data_parallel.naive_training", "data_parallel.naive_trainable"),
        mistake=25,
    ),
    Mutant(
        "divided_by_2",
        "The sum is divided by 2, which is W in the lecture's example.",
        (Edit(DIVIDE, "    flat /= 2\n"),),
        ("data_parallel.naive_gradients", "data_parallel.naive_trainable"),
        mistake=26,
    ),
    Mutant(
        "average_divided_again",
        "AVG, and then divided by W.",
        (Edit(REDUCE, REDUCE.replace("SUM", "AVG")),),
        ("data_parallel.naive_gradients", "data_parallel.flat_training"),
        mistake=27,
    ),
    Mutant(
        "mean_over_those_that_have_one",
        "The sum is divided by the number of ranks that have a gradient.",
        (
            Edit(
                REDUCE,
                REDUCE + "    own = [float(any(p.grad is not None for p in parameters))]\n"
                "    have = flat.new_tensor(own)\n    dist.all_reduce(have, group=group)\n"
                "    work.wait()\n    flat *= dist.get_world_size(group) / have.clamp(min=1)\n",
            ),
        ),
        ("data_parallel.naive_missing_gradients",),
    ),
    Mutant(
        "parameters_reduced_instead_of_gradients",
        "The mean over ranks is taken of the parameter, and written to it.",
        (Edit(GRADIENT, "p.detach().clone()"), Edit(WRITE, "        parameter.copy_(piece.view(parameter.shape))\n")),
        ("data_parallel.naive_gradients", "data_parallel.overlapped_gradients", "data_parallel.bucketed_gradients"),
        mistake=29,
    ),
    Mutant(
        "each_rank_sums_in_its_own_order",
        "Every rank gathers the others' gradients and adds them to its own: the bits differ between ranks.",
        (
            Edit(
                REDUCE,
                """\
    world_size = dist.get_world_size(group)
    pieces = [torch.empty_like(flat) for _ in range(world_size)]
    work = dist.all_gather(pieces, flat, group=group, async_op=True)
    work.wait()
    for step in range(1, world_size):
        flat += pieces[(dist.get_rank(group) + step) % world_size]
""",
            ),
        ),
        ("data_parallel.naive_gradients", "data_parallel.flat_gradients", "data_parallel.bucketed_gradients"),
    ),
    Mutant(
        "gradients_of_another_dtype",
        "All gradients travel in one buffer of the first one's dtype.",
        (
            Edit(FLAT_LIST, "            alike.setdefault((torch.float32, parameter.device), []).append(parameter)\n"),
            Edit(
                "gradient.reshape(-1) for gradient in gradients",
                "gradient.reshape(-1).to(gradients[0].dtype) for gradient in gradients",
            ),
        ),
        ("data_parallel.flat_gradients",),
    ),
]
