"""`make samples`: writes the sample submissions to tests/samples/, which git ignores."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from tests.mutants.mutant import apply
from tests.sample_edits.samples import EVERYTHING, SAMPLES, Sample

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "samples"


def files_of(sample: Sample) -> dict[str, str]:
    """The sample's files by name. Raises ValueError where an edit does not fit the reference any more."""
    files = {}
    for module in EVERYTHING:
        if module in sample.missing:
            continue
        base = "assignment" if module in sample.blank else "reference"
        source = (ROOT / base / f"{module}.py").read_text()
        files[f"{module}.py"] = apply(source, sample.edits.get(module, ()))
    return files


def write(sample: Sample, folder: Path) -> None:
    """Writes one sample into `folder`."""
    files = files_of(sample)
    if sample.nested:
        with zipfile.ZipFile(folder / f"{sample.name}.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(f"homework/{name}", text)
        return
    (folder / sample.name).mkdir()
    for name, text in files.items():
        (folder / sample.name / name).write_text(text)


def main() -> None:
    """Writes all of them afresh."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for sample in SAMPLES:
        write(sample, FOLDER)


if __name__ == "__main__":
    main()
