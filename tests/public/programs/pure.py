"""A program that calls functions without effects: calls and arguments only."""

from __future__ import annotations

from grader.world.program import attempt


def call(here, *, calls):
    """Yields what became of each call: {"value" or "raised", "arguments": as they are afterwards}.

    calls: {"function": its name, "arguments": [...], "keywords": {...}, "refused": whether it is to raise}.
    """
    for each in calls:
        function, arguments, keywords = getattr(here.submission, each["function"]), each["arguments"], each["keywords"]
        if each["refused"]:
            outcome = attempt(function, *arguments, **keywords)
        else:  # an error goes on, with its lines
            outcome = {"value": function(*arguments, **keywords)}
        yield {**outcome, "arguments": each["arguments"]}


def constant(here, *, name):
    """Returns a constant of the submission."""
    return getattr(here.submission, name)
