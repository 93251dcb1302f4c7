"""Wrong overlap of PipelineStage: messages that hide behind no computation, in another order, or too many at once."""

from __future__ import annotations

from tests.mutants import pipeline_texts as text
from tests.mutants.mutant import Edit, Mutant
from tests.mutants.pipeline_texts import fails


def reordered(code: str, *, when: str = "self.stage.overlap") -> Edit:
    """Other steps with overlap, or whenever: `code` makes `steps` of `steps`."""
    lines = "".join(f"            {line}\n" for line in code.splitlines())
    return Edit(text.STEPS_CHOSEN, f"{text.STEPS_CHOSEN}        if {when}:\n{lines}")


TAGGED = Edit(text.MESSAGE, text.MESSAGE.replace("group=stage.group)", "group=stage.group, tag=k)"))
RECEIVES_FIRST = (
    'early = [step for step in steps if step.verb == "post" and step.action.kind is Kind.RECEIVE_ACTIVATION]\n'
    "steps = early{} + [step for step in steps if step not in early]"
)
SENDS_LAST = (
    'ends = [step for step in steps if step.verb == "wait" and step.action.kind in SEND_KINDS]\n'
    "steps = [step for step in steps if step not in ends] + ends"
)

OVERLAPS = [
    Mutant(
        "no_overlap",
        "takes no notice of overlap: waits for each message as soon as it is posted",
        (Edit(text.STEPS_CHOSEN, "        steps = steps_in_order(schedule)\n"),),
        fails("overlap"),
    ),
    Mutant(
        "prefetch_after_the_computation",
        "posts the next receive when this microbatch is computed, and not before",
        (
            Edit(text.PREFETCH, ""),
            Edit(
                text.BETWEEN, text.BETWEEN.replace("            if sending", text.PREFETCH + "            if sending")
            ),
        ),
        fails("overlap"),
    ),
    Mutant(
        "no_prefetch_backward",
        "posts the next receive early in the forward phase only",
        (Edit("if later.kind is receive)", "if later.kind is receive is Kind.RECEIVE_ACTIVATION)"),),
        fails("overlap"),
    ),
    Mutant(
        "prefetch_waited_for_at_once",
        "posts the next receive early, and waits for it at once",
        (
            Edit(text.PREFETCH, text.PREFETCH + '                steps.append(Step("wait", posted))\n'),
            Edit(text.RECEIVE_STEP, text.RECEIVE_STEP.replace(text.RECEIVE_WAIT, "    " + text.RECEIVE_WAIT)),
        ),
        fails("overlap"),
    ),
    Mutant(
        "send_waited_for_at_once",
        "posts each send with isend, and waits for it at once",
        (Edit("            sending = action\n", '            steps.append(Step("wait", action))\n'),),
        fails("overlap"),
    ),
    Mutant(
        "gradient_send_waited_for_at_once",
        "posts each send of a gradient with isend, and waits for it at once",
        (
            Edit(
                "            sending = action\n",
                "            if action.kind is Kind.SEND_GRADIENT:\n"
                '                steps.append(Step("wait", action))\n'
                "            else:\n"
                "                sending = action\n",
            ),
        ),
        fails("overlap"),
    ),
    Mutant(
        "sends_after_the_next_computation",
        "posts the send of a microbatch when the next one is computed",
        (
            reordered(
                "for k in range(len(self.rows) - 1):\n"
                "    for send, compute in zip(SEND_KINDS, COMPUTE_KINDS):\n"
                "        late = [step for step in steps if step.action == Action(send, k)]\n"
                "        steps = [step for step in steps if step not in late]\n"
                "        if late:\n"
                '            place = steps.index(Step("compute", Action(compute, k + 1)))\n'
                "            steps[place + 1 : place + 1] = late"
            ),
        ),
        fails("overlap"),
    ),
    Mutant(
        "gradients_received_ahead_of_the_last_activation",
        "posts the first receive of a gradient before the last activation is sent",
        (
            reordered(
                'early = Step("post", Action(Kind.RECEIVE_GRADIENT, 0))\n'
                "if early in steps:\n"
                "    steps.remove(early)\n"
                '    steps.insert(steps.index(Step("post", Action(Kind.SEND_ACTIVATION, len(self.rows) - 1))), early)'
            ),
        ),
        fails("overlap"),
    ),
    Mutant(
        "all_receives_at_once",
        "posts the receives of all activations before the first forward",
        (reordered(RECEIVES_FIRST.format("")),),
        fails("holds_nothing"),
    ),
    Mutant(
        "told_apart_by_tags",
        "posts all receives at once, the last microbatch's first, and tells the messages apart by tags",
        (reordered(RECEIVES_FIRST.format("[::-1]")), TAGGED),
        fails("overlap"),
    ),
    Mutant(
        "send_buffer_reused",
        "writes the activation of each microbatch into the same memory, while the one before is still being sent",
        (
            Edit(
                text.SEND_BUFFER,
                text.SEND_BUFFER + "            if stage.overlap:\n"
                '                shared = vars(self).setdefault("shared", torch.empty_like(buffer))\n'
                "                buffer = shared[: len(buffer)].copy_(buffer)\n",
            ),
            reordered(SENDS_LAST),
        ),
        fails("overlap_results", "overlap"),
    ),
    Mutant(
        "sends_never_waited_for",
        "drops the handles of its sends",
        (Edit(text.COMPLETE, text.COMPLETE.replace("work.wait()", "_ = action.kind in SEND_KINDS or work.wait()")),),
        fails("messages", "overlap"),
    ),
    Mutant(
        "sends_waited_for_when_the_stage_is_gone",
        "waits for the sends with overlap in the destructor of the stage",
        (
            Edit(
                text.COMPLETE,
                text.COMPLETE.replace(
                    "        work.wait()\n",
                    "        if action.kind in SEND_KINDS and self.stage.overlap:\n"
                    '            self.stage.__dict__.setdefault("sends", []).append(work)\n'
                    "            return\n"
                    "        work.wait()\n",
                ),
            ),
            Edit(
                text.CLASS_OF_STAGE,
                text.CLASS_OF_STAGE + "    def __del__(self):\n"
                '        for work in self.__dict__.get("sends", []):\n'
                "            work.wait()\n\n",
            ),
        ),
        fails("overlap"),
    ),
    Mutant(
        "isend_without_overlap",
        "waits for its sends at the end of the call, without overlap",
        (reordered(SENDS_LAST, when="not self.stage.overlap"),),
        fails("messages"),
    ),
    Mutant(
        "prefetch_without_overlap",
        "posts the next receive early, without overlap too",
        (Edit(text.STEPS_CHOSEN, "        steps = steps_overlapped(schedule)\n"),),
        fails("messages"),
    ),
]
