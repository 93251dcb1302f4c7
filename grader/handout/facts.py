"""What a student could notice of a handout, as data: handout.json, and what is different between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from grader.checking.course import Course
from grader.checking.spec import CheckSpec
from grader.handout.contract import Contract
from grader.handout.questions import Question

FILE_NAME = "handout.json"
Facts = dict[str, Any]


def facts_of(
    course: Course, contracts: Mapping[str, Contract], checks: Sequence[CheckSpec], questions: Sequence[Question]
) -> Facts:
    """The facts of a handout: course, contracts, checks and questions, as plain JSON values. Pure."""
    facts = course.model_dump(mode="json", exclude={"points"})
    return {
        "course": facts | {"scale": course.points.scale},
        "contracts": {module: asdict(contract) for module, contract in contracts.items()},
        "checks": [asdict(spec) for spec in checks],
        "questions": [asdict(question) for question in questions],
    }


def to_json(facts: Facts) -> str:
    """The text of handout.json."""
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


def differences(old: Facts, new: Facts) -> list[str]:
    """What a student would notice, a line each: dates and rules, contracts, checks and points, questions. Pure."""
    lines = list(_leaves("", old["course"], new["course"]))
    lines += _of_contracts(old["contracts"], new["contracts"])
    lines += _of_checks(_by("name", old["checks"]), _by("name", new["checks"]))
    lines += _of_questions(_by("id", old["questions"]), _by("id", new["questions"]))
    return lines


def _leaves(key: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            yield from _leaves(f"{key}.{name}" if key else name, old.get(name), new.get(name))
    elif old != new:
        yield f"{key}: {_shown(old)} -> {_shown(new)}"


def _of_contracts(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for module in dict.fromkeys([*old, *new]):
        if module not in new or module not in old:
            yield f"{module}.py: {'no longer offered' if module not in new else 'new'}"
            continue
        if old[module]["docstring"] != new[module]["docstring"]:
            yield f"{module}.py: the module's rules have another text"
        before, after = _named(old[module]["definitions"]), _named(new[module]["definitions"])
        for name in dict.fromkeys([*before, *after]):
            if name not in after or name not in before:
                yield f"{module}.py: {name} is {'gone' if name not in after else 'new'}"
            elif before[name]["signature"] != after[name]["signature"]:
                yield f"{module}.py: {name} has another signature: {' '.join(after[name]['signature'].split())}"
            elif before[name]["docstring"] != after[name]["docstring"]:
                yield f"{module}.py: the contract of {name} has another text"


def _named(definitions: Iterable[Mapping[str, Any]], prefix: str = "") -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for definition in definitions:
        found[prefix + definition["name"]] = definition
        found |= _named(definition["members"], f"{prefix}{definition['name']}.")
    return found


def _of_checks(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield f"check {name}: gone ({_worth(old[name])})"
        elif name not in old:
            yield f"check {name}: new ({_worth(new[name])})"
        else:
            if _worth(old[name]) != _worth(new[name]):
                yield f"check {name}: {_worth(old[name])} -> {_worth(new[name])}"
            if old[name]["worlds"] != new[name]["worlds"]:
                yield f"check {name}: worlds {_shown(old[name]['worlds'])} -> {_shown(new[name]['worlds'])}"
            if old[name]["statement"] != new[name]["statement"]:
                yield f"check {name}: now states: {new[name]['statement']}"


def _of_questions(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys([*old, *new]):
        if key not in new or key not in old:
            yield f"question {key}: {'gone' if key not in new else 'new'}"
        elif old[key] != new[key]:
            yield f"question {key}: another text"


def _worth(check: Mapping[str, Any]) -> str:
    kind = "hidden" if check["hidden"] else "public"
    unit = "point" if check["points"] == 1 else "points"
    return f"{check['points']} {kind} {'bonus ' if check['bonus'] else ''}{unit}"


def _by(key: str, entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {entry[key]: entry for entry in entries}


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return " ".join(str(value).split()) if value is not None else "nothing"
