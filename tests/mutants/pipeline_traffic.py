"""Right results of PipelineStage by messages that should not be there: too many, too large, out of turn, elsewhere."""

from __future__ import annotations

from tests.mutants import pipeline_texts as text
from tests.mutants.mutant import Edit, Mutant
from tests.mutants.pipeline_texts import fails

TRAFFIC = [
    Mutant(
        "losses_broadcast",
        "the last stage tells all the others the losses",
        (
            Edit(
                text.LOSSES,
                "        losses = torch.stack(run.losses) if self.is_last else torch.empty(self.num_microbatches)\n"
                "        dist.broadcast(losses, self.ranks[-1], group=self.group)\n"
                "        return losses if self.is_last else None\n",
            ),
        ),
        fails("messages", "overlap"),
    ),
    Mutant(
        "losses_to_the_first_stage",
        "the last stage sends the losses to the first, which prints them",
        (
            Edit(
                text.LOSSES,
                "        if self.is_last and not self.is_first:\n"
                "            dist.send(torch.stack(run.losses), self.ranks[0], group=self.group)\n"
                "        if self.is_first and not self.is_last:\n"
                "            dist.recv(torch.empty(self.num_microbatches), self.ranks[-1], group=self.group)\n"
                + text.LOSSES,
            ),
        ),
        fails("messages", "overlap"),
    ),
    Mutant(
        "shapes_sent_too",
        "sends the number of rows before each activation",
        (
            Edit(
                text.MESSAGE,
                "        if action.kind is Kind.SEND_ACTIVATION:\n"
                "            dist.send(torch.tensor([len(buffer)]), peer, group=stage.group)\n"
                "        if action.kind is Kind.RECEIVE_ACTIVATION:\n"
                "            dist.recv(torch.tensor([0]), peer, group=stage.group)\n" + text.MESSAGE,
            ),
        ),
        fails("messages", "overlap"),
    ),
    Mutant(
        "gradients_sent_as_float64",
        "sends gradients in double precision",
        (
            Edit(text.GRADIENT_BUFFER, text.GRADIENT_BUFFER.replace(".shape)", ".shape, dtype=torch.float64)")),
            Edit("self.input_gradients.pop(k).contiguous()", "self.input_gradients.pop(k).double().contiguous()"),
            Edit(
                "self.output_gradients[action.microbatch] = buffer",
                "self.output_gradients[action.microbatch] = buffer.to(self.outputs[action.microbatch].dtype)",
            ),
        ),
        fails("messages", "overlap"),
    ),
    Mutant(
        "microbatches_in_reverse",
        "computes and sends the microbatches from the last to the first",
        (
            Edit(
                text.STEPS_CHOSEN,
                "        schedule = [Action(kind, len(self.rows) - 1 - k) for kind, k in schedule]\n"
                + text.STEPS_CHOSEN,
            ),
            Edit(text.LOSSES, text.LOSSES.replace("run.losses", "run.losses[::-1]")),
        ),
        fails("messages", "overlap", "uneven_rows"),
    ),
    Mutant(
        "messages_in_the_default_group",
        "forgets the group when it sends and receives: the ranks are right all the same",
        (Edit(text.MESSAGE, text.MESSAGE.replace(", group=stage.group", "")),),
        fails("sub_group"),
    ),
    Mutant(
        "a_group_of_its_own",
        "makes a group of the same ranks for its messages",
        (
            Edit(
                "        self.group = group\n",
                "        ranks = dist.get_process_group_ranks(group)\n"
                "        self.group = dist.new_group(ranks, use_local_synchronization=True)\n",
            ),
        ),
        fails("messages", "overlap"),
    ),
]
