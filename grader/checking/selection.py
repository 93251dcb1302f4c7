"""Which checks a course gives, and what they are worth: all of them, or a part, in fewer worlds, for more points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from grader.checking.spec import MODULES, CheckSpec

TIERS = ("full", "core")
WORLD_SIZES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Selection:
    """What a course offers. The default is everything.

    modules:     in the lecture's order.
    tier:        "core" leaves out the checks that are not marked `core`, and with them every bonus.
    world_sizes: a check runs in those of its worlds that are among them.
    scale:       every check's points are multiplied by it.
    """

    modules: tuple[str, ...] = MODULES
    tier: str = "full"
    world_sizes: tuple[int, ...] = WORLD_SIZES
    scale: int = 1

    def takes(self, spec: CheckSpec) -> bool:
        """Whether the course gives this check."""
        return spec.module in self.modules and (spec.core or self.tier == "full")

    def applied(self, spec: CheckSpec) -> CheckSpec:
        """The check as the course gives it. Raises ValueError if no world is left in which its ranks have a peer."""
        worlds = tuple(size for size in spec.worlds if size in self.world_sizes)
        if max(spec.worlds, default=0) > 1 and max(worlds, default=0) < 2:
            sizes = ", ".join(map(str, spec.worlds))
            raise ValueError(f"world_sizes: {spec.name} runs in worlds of {sizes}, and none of them above 1 is there")
        return replace(spec, worlds=worlds, points=spec.points * self.scale)

    def given(self, specs: Iterable[CheckSpec]) -> list[CheckSpec]:
        """Those checks that the course gives, as it gives them. Raises ValueError as `applied` does."""
        return [self.applied(spec) for spec in specs if self.takes(spec)]

    def to_ini(self) -> dict[str, str]:
        """The settings in pytest's configuration that say the same; see `from_ini`."""
        return {
            "grader_modules": " ".join(self.modules),
            "grader_tier": self.tier,
            "grader_worlds": " ".join(map(str, self.world_sizes)),
            "grader_scale": str(self.scale),
        }


INI = Selection().to_ini()  # name -> default


def from_ini(settings: Mapping[str, str]) -> Selection:
    """The selection that settings of pytest describe. Raises ValueError that names the setting."""
    modules = settings["grader_modules"].split()
    if unknown := [module for module in modules if module not in MODULES]:
        raise ValueError(f"grader_modules: no module {unknown[0]!r}; there are {', '.join(MODULES)}")
    if settings["grader_tier"] not in TIERS:
        raise ValueError(f"grader_tier: {settings['grader_tier']!r} is neither full nor core")
    worlds = settings["grader_worlds"].split()
    if not worlds or any(size not in map(str, WORLD_SIZES) for size in worlds):
        raise ValueError(f"grader_worlds: {' '.join(worlds) or 'nothing'!r} is not a list of numbers from 1 to 5")
    scale = settings["grader_scale"]
    if not scale.isdecimal() or int(scale) < 1:
        raise ValueError(f"grader_scale: {scale!r} is not a whole number above 0")
    ordered = tuple(module for module in MODULES if module in modules)
    return Selection(ordered, settings["grader_tier"], tuple(sorted(map(int, worlds))), int(scale))
