"""Run every fuzz target for a while, with libFuzzer and the address and undefined sanitizers.

    python scripts/fuzz.py              each target for FUZZ_SECONDS, 60 without it
    python scripts/fuzz.py frame host   only those
    python scripts/fuzz.py --merge      then keep what is new in fuzz/corpus

An input that fails ends its target, lies in build/fuzz/crashes and makes the status 1. What
a run finds new lies in build/fuzz/corpus; --merge chooses from it and fuzz/corpus the
inputs that together reach all that both reach, at most 120 a target beside those with a name.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
CRASHES = BUILD / "crashes"
TARGETS = ("frame", "attributes", "describe", "batch", "values", "npy", "host")
MOST_INPUTS = 120
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}


def has_libfuzzer(clang: str) -> bool:
    """Whether this clang can link a fuzzer: some packages leave its library out."""
    program = "int LLVMFuzzerTestOneInput(const char *d, unsigned long n) {return !d && n;}"
    BUILD.mkdir(parents=True, exist_ok=True)
    command = [clang, "-x", "c", "-", "-fsanitize=fuzzer,address,undefined"]
    command += ["-o", str(BUILD / "try")]
    return subprocess.run(command, input=program.encode(), check=False).returncode == 0


def build(clang: str, targets: list[str]) -> None:
    # Compiled again by another compiler, an old folder would keep the first one.
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD / "cmake"), "-DJAXC_FUZZ=ON"]
    configure += ["-DJAXC_BUILD_TESTS=ON", f"-DCMAKE_C_COMPILER={clang}", "-Wno-dev"]
    configure += ["-DCMAKE_RULE_MESSAGES=OFF"]
    subprocess.run([*configure, "--log-level=WARNING"], check=True)
    names = [f"fuzz_{target}" for target in targets]
    command = ["cmake", "--build", str(BUILD / "cmake"), "-j2", "--target", *names]
    subprocess.run([*command, "--", "-s"], check=True)


def program(target: str) -> str:
    return str(BUILD / "cmake" / "fuzz" / f"fuzz_{target}")


def fuzz(target: str, seconds: int) -> tuple[int, bool]:
    """Runs one target; the number of executions, and whether none failed."""
    found = BUILD / "corpus" / target
    log = BUILD / f"{target}.log"
    found.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=20"]
    options += ["-max_len=2048", "-print_final_stats=1"]
    options += [f"-artifact_prefix={CRASHES}/{target}-"]
    folders = [str(found), str(ROOT / "fuzz" / "corpus" / target)]
    with log.open("wb") as out:
        command = [program(target), *options, *folders]
        status = subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, check=False, env=ENVIRONMENT
        ).returncode
    text = log.read_text(errors="replace")
    units = re.search(r"number_of_executed_units: *(\d+)", text)
    if status != 0:
        print("\n".join(text.splitlines()[-40:]))
    return int(units[1]) if units else 0, status == 0


def read_features(control: Path) -> dict[str, set[int]]:
    """What each input reaches, from libFuzzer's control file of a merge."""
    lines = control.read_text().splitlines()
    count = int(lines[0])
    names = lines[2 : 2 + count]
    features: dict[str, set[int]] = {}
    for line in lines[2 + count :]:
        words = line.split()
        if words[0] in ("FT", "COV"):
            reached = features.setdefault(names[int(words[1])], set())
            # Edges and counters of edges share numbers; keep them apart.
            reached.update((2 if words[0] == "FT" else -2) * int(w) - 1 for w in words[2:])
    return features


def choose(features: dict[str, set[int]]) -> list[str]:
    """Inputs that reach the most, one after the other; the shorter of equals."""
    chosen: list[str] = []
    missing = set().union(*features.values())
    left = sorted(features, key=lambda name: Path(name).stat().st_size)
    while missing and left and len(chosen) < MOST_INPUTS:
        best = max(left, key=lambda name: len(features[name] & missing))
        if not features[best] & missing:
            break
        chosen.append(best)
        missing -= features[best]
        left.remove(best)
    return chosen


def merge(target: str) -> None:
    """Inputs with a name of their own (seeds, mended faults) stay in any case."""
    kept = ROOT / "fuzz" / "corpus" / target
    control = BUILD / f"{target}.merge"
    scratch = BUILD / "merged" / target
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    control.unlink(missing_ok=True)
    command = [program(target), "-merge=1", f"-merge_control_file={control}"]
    command += [str(scratch), str(kept), str(BUILD / "corpus" / target)]
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    contents = [Path(name).read_bytes() for name in choose(read_features(control))]
    for old in kept.iterdir():
        if re.fullmatch("[0-9a-f]{12}", old.name):
            old.unlink()
    named = {path.read_bytes() for path in kept.iterdir()}
    for data in contents:
        if data not in named:
            (kept / hashlib.sha1(data).hexdigest()[:12]).write_bytes(data)
    print(f"{target:<12} {len(list(kept.iterdir()))} inputs kept")


def main() -> int:
    seconds = int(os.environ.get("FUZZ_SECONDS", "60"))
    targets = [name for name in sys.argv[1:] if name != "--merge"] or list(TARGETS)
    unknown = sorted(set(targets) - set(TARGETS))
    clang = shutil.which("clang")
    if unknown:
        print(f"fuzz: there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
        return 1
    if clang is None or not has_libfuzzer(clang):
        print("fuzz: needs clang with libFuzzer; there is none here", flush=True)
        return 1
    build(clang, targets)
    CRASHES.mkdir(parents=True, exist_ok=True)
    total, failed = 0, 0
    for target in targets:
        count, passed = fuzz(target, seconds)
        total += count
        failed += not passed
        print(f"{target:<12} {count:>12,} executions{'' if passed else '  FAILED'}", flush=True)
    print(f"{'total':<12} {total:>12,} executions, {failed} of {len(targets)} targets failed")
    if failed:
        print(f"the inputs lie in {CRASHES.relative_to(ROOT)}")
        return 1
    if "--merge" in sys.argv[1:]:
        for target in targets:
            merge(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
