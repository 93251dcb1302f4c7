"""Mutants of tensor_parallel.py: the layer and the network."""

from tests.mutants.mutant import Edit, Mutant
from tests.mutants.tensor_texts import (
    ADD_BIAS,
    CHAIN,
    CHAIN_STARTS,
    CHAIN_STARTS_AT_ONCE,
    COPY_INPUT,
    DRAW,
    LAST_GATHER,
    LOAD_WEIGHT,
    NEW_LAYER,
    NEW_WEIGHT,
    OWN_OF_MASTER,
    fails,
)

LAYERS = [
    Mutant(
        "identical_shards",
        "Every rank draws a shard of its own, from random numbers that are alike on all ranks.",
        (Edit(OWN_OF_MASTER, "        return shard_columns(master, 0, self._world_size)\n"),),
        fails("linear_starts_from_one_master"),
        mistake=52,
    ),
    Mutant(
        "a_master_on_each_rank",
        "Every rank slices a master of its own, which is the same only where the random numbers are.",
        (Edit(OWN_OF_MASTER, "        return shard_columns(master, self._rank, self._world_size)\n"),),
        fails("linear_starts_from_one_master", "linear_of_any_shape"),
    ),
    Mutant(
        "a_fixed_seed",
        "Starts the random numbers anew in the constructor, so that all layers of one shape are equal.",
        (Edit(DRAW, "torch.manual_seed(0)\n        " + DRAW),),
        fails("linear_starts_from_one_master"),
    ),
    Mutant(
        "the_layout_of_nn_linear",
        "The weight is (own columns, in).",
        (
            Edit(NEW_WEIGHT, NEW_WEIGHT[:-1] + ".t().contiguous())"),
            Edit("y = x @ self.weight\n", "y = x @ self.weight.t()\n"),
        ),
        fails("linear_starts_from_one_master", "linear_computes_its_own_columns"),
    ),
    Mutant(
        "the_master_of_rank_0_of_the_world",
        "Broadcasts from rank 0 of the world, which a group need not hold.",
        (Edit("dist.broadcast(master, group_src=0,", "dist.broadcast(master, src=0,"),),
        fails("linear_of_any_shape"),
    ),
    Mutant(
        "bias_forgotten",
        "forward does not add the bias.",
        (Edit(ADD_BIAS, "        y = x @ self.weight\n"),),
        fails("linear_computes_its_own_columns", "linear_gathers_its_output", "mlp_is_the_unsplit_network"),
    ),
    Mutant(
        "input_never_copied",
        "forward leaves copy_to_shards out: the gradient of x comes from the own columns alone.",
        (Edit(COPY_INPUT, ""),),
        fails("linear_gathers_its_output"),
        mistake=54,
    ),
    Mutant(
        "input_always_copied",
        "forward passes x through copy_to_shards whatever copy_input says.",
        (Edit(COPY_INPUT, "        x = copy_to_shards(x, group=self._group)\n"),),
        fails("linear_computes_its_own_columns", "mlp_is_the_unsplit_network"),
    ),
    Mutant(
        "output_always_gathered",
        "forward returns all columns whatever gather_output says.",
        (Edit(" if self.gather_output else y\n", "\n"),),
        fails("linear_computes_its_own_columns"),
    ),
    Mutant(
        "output_gathered_for_sharded",
        "The layer gathers its output with gather_for_sharded.",
        (Edit("return gather_for_replicated(y, self.out", "return gather_for_sharded(y, self.out"),),
        fails("linear_gathers_its_output"),
        mistake=55,
    ),
    Mutant(
        "load_makes_new_parameters",
        "load_master puts a new Parameter in the place of the old one, which the optimizer still holds.",
        (Edit("self.weight.copy_(shard_columns(weight_DF,", "self.weight = nn.Parameter(shard_columns(weight_DF,"),),
        fails("linear_loads_a_master"),
    ),
    Mutant(
        "load_keeps_a_view",
        "load_master points the parameter to the columns of the master itself.",
        (
            Edit(
                LOAD_WEIGHT,
                "            columns = piece_range(self.out_features, self._rank, self._world_size)\n"
                "            self.weight.data = weight_DF.detach()[:, columns.start : columns.stop]\n",
            ),
        ),
        fails("linear_loads_a_master"),
    ),
    Mutant(
        "load_takes_the_first_columns",
        "Every rank loads rank 0's columns.",
        (Edit(LOAD_WEIGHT, LOAD_WEIGHT.replace("self._rank", "0")),),
        fails("linear_loads_a_master"),
        mistake=52,
    ),
    Mutant(
        "load_without_a_bias",
        "load_master takes a weight alone, and leaves the bias as it was.",
        (Edit("if (bias_F is None) != (self.bias is None):", "if bias_F is not None and self.bias is None:"),),
        fails("linear_refuses_wrong_shapes"),
    ),
    Mutant(
        "load_before_it_looks",
        "load_master has copied the weight when it sees that the bias is wrong.",
        (
            Edit(LOAD_WEIGHT, ""),
            Edit(
                "        if (bias_F is None) != (self.bias is None):",
                "        with torch.no_grad():\n" + LOAD_WEIGHT + "        if (bias_F is None) != (self.bias is None):",
            ),
        ),
        fails("linear_refuses_wrong_shapes"),
    ),
    Mutant(
        "any_features",
        "The constructor takes numbers of features below 1.",
        (Edit("if in_features < 1 or out_features < 1:", "if in_features < 0 or out_features < 0:"),),
        fails("linear_refuses_wrong_shapes"),
    ),
    Mutant(
        "any_input",
        "forward leaves it to the product to refuse an input of the wrong width.",
        (Edit("if x.dim() == 0 or x.shape[-1] != self.in_features:", "if x.dim() == 0:"),),
        fails("linear_refuses_wrong_shapes"),
    ),
]

NETWORKS = [
    Mutant(
        "chain_of_replicated",
        "Slicing everywhere: the network gathers with gather_for_replicated after every layer.",
        (Edit(LAST_GATHER, "            gather = gather_for_replicated\n"),),
        fails("mlp_is_the_unsplit_network", "mlp_trains_as_the_unsplit_network"),
        mistake=54,
    ),
    Mutant(
        "chain_of_sharded",
        "Reduce-scatter everywhere: the network gathers with gather_for_sharded after the last layer too.",
        (Edit(LAST_GATHER, "            gather = gather_for_sharded\n"),),
        fails("mlp_is_the_unsplit_network", "mlp_trains_as_the_unsplit_network"),
        mistake=55,
    ),
    Mutant(
        "chain_without_a_copy",
        "The network does not pass x through copy_to_shards.",
        (Edit(CHAIN_STARTS, CHAIN_STARTS_AT_ONCE),),
        fails("mlp_is_the_unsplit_network"),
        mistake=54,
    ),
    Mutant(
        "chain_that_copies_and_scatters",
        "The layers copy their input, and gather_for_sharded sums again.",
        (Edit(NEW_LAYER, NEW_LAYER.replace("copy_input=False", "copy_input=True")),),
        fails("mlp_is_the_unsplit_network", "mlp_trains_as_the_unsplit_network"),
    ),
    Mutant(
        "no_activation_at_the_end",
        "The last layer has no activation.",
        (
            Edit(
                CHAIN,
                "            y = layer(x)\n"
                "            y = y if layer is self.layers[-1] else self.activation(y)\n"
                "            x = gather(y, width, group=self._group)\n",
            ),
        ),
        fails("mlp_is_the_unsplit_network", "mlp_trains_as_the_unsplit_network"),
    ),
    Mutant(
        "activation_of_all_columns",
        "Gathers first, and every rank applies the activation to all columns.",
        (Edit(CHAIN, "            x = self.activation(gather(layer(x), width, group=self._group))\n"),),
        fails("mlp_of_any_shape"),
    ),
    Mutant(
        "activation_is_always_gelu",
        "The network does not use the activation that it is given.",
        (Edit("self.activation = activation", "self.activation = F.gelu"),),
        fails("mlp_of_any_shape"),
    ),
    Mutant(
        "bias_always",
        "The network's layers have a bias whatever it is told.",
        (Edit(NEW_LAYER, NEW_LAYER.replace("width_out, bias,", "width_out, True,")),),
        fails("mlp_of_any_shape", "mlp_of_uneven_columns"),
    ),
    Mutant(
        "width_from_the_own_columns",
        "Takes the width of a layer to be W times that of the own columns.",
        (
            Edit(
                CHAIN,
                "            h = self.activation(layer(x))\n"
                "            x = gather(h, h.shape[-1] * dist.get_world_size(self._group), group=self._group)\n",
            ),
        ),
        fails("mlp_of_uneven_columns"),
        mistake=50,
    ),
    Mutant(
        "any_sizes",
        "The network takes a single size, and is then no network.",
        (Edit("if len(sizes) < 2 or min(sizes) < 1:", "if not sizes or min(sizes) < 1:"),),
        fails("mlp_of_any_shape"),
    ),
]
