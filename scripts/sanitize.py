"""Run the C tests and the fuzz corpora under sanitizers and valgrind.

    python scripts/sanitize.py            all steps
    python scripts/sanitize.py thread     only that one

Steps: address (address and undefined behaviour together), thread, valgrind (memory errors
and leaks). A step whose tool is missing says so and counts as nothing. The last line is
'sanitize: N passed, N failed'.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS = ("address", "thread", "valgrind")
FLAGS = {"address": "address,undefined", "thread": "thread"}
VALUE = {"address": "ON", "thread": "thread", "valgrind": "OFF"}
VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full"]
VALGRIND += ["--errors-for-leak-kinds=definite,indirect,possible"]
WORKERS = 2
# valgrind computes with denormals whatever the processor is told.
NOT_UNDER_VALGRIND = "denormals_are_flushed"


def works(compiler: str, sanitizer: str) -> bool:
    """Whether a program built with the sanitizer runs: its library may be missing."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "try")
        command = [compiler, "-x", "c", "-", f"-fsanitize={sanitizer}", "-o", out]
        source = b"int main(void) { return 0; }"
        tried = subprocess.run(command, input=source, capture_output=True, check=False)
        return tried.returncode == 0 and subprocess.run([out], check=False).returncode == 0


def find_compiler(step: str) -> str | None:
    """clang finds more of undefined behaviour; gcc does where there is no clang."""
    for name in ("clang", "gcc"):
        if shutil.which(name) and (step == "valgrind" or works(name, FLAGS[step])):
            return name
    return None


def build(step: str, compiler: str) -> Path:
    folder = ROOT / "build" / f"sanitize-{step}"
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DJAXC_BUILD_TESTS=ON"]
    configure += [f"-DJAXC_SANITIZE={VALUE[step]}", f"-DCMAKE_C_COMPILER={compiler}"]
    # DWARF 4: valgrind up to 3.19 cannot read what clang writes by itself.
    configure += ["-DCMAKE_C_FLAGS=-g -gdwarf-4", "-Wno-dev", "--log-level=WARNING"]
    configure += ["-DCMAKE_RULE_MESSAGES=OFF"]
    subprocess.run(configure, check=True)
    command = ["cmake", "--build", str(folder), f"-j{WORKERS}", "--", "-s"]
    subprocess.run(command, check=True)
    return folder


def run_ctest(folder: Path) -> tuple[int, int]:
    report = folder / "junit.xml"
    report.unlink(missing_ok=True)
    options = ["--output-on-failure", f"-j{WORKERS}", "--quiet"]
    command = ["ctest", "--test-dir", str(folder), *options, "--output-junit", str(report)]
    status = subprocess.run(command, check=False).returncode
    passed = failed = 0
    if report.exists():
        for case in ET.parse(report).getroot().iter("testcase"):
            wrong = case.find("failure") is not None or case.find("error") is not None
            failed += wrong
            passed += not wrong and case.find("skipped") is None
    return passed, failed or int(status != 0)


def run_valgrind(folder: Path) -> tuple[int, int]:
    """Every command that ctest would run, as valgrind's program."""
    command = ["ctest", "--test-dir", str(folder), "--show-only=json-v1"]
    listing = subprocess.run(command, check=True, capture_output=True)
    tests = [t for t in json.loads(listing.stdout)["tests"] if t.get("command")]
    for test in [t for t in tests if NOT_UNDER_VALGRIND in t["name"]]:
        print(f"-- {test['name']}: left out, valgrind cannot flush denormals")
        tests.remove(test)

    def run_one(test: dict[str, object]) -> bool:
        arguments = test["command"]
        assert isinstance(arguments, list)
        done = subprocess.run(
            [*VALGRIND, *arguments], capture_output=True, check=False, cwd=folder
        )
        if done.returncode != 0:
            text = (done.stdout + done.stderr).decode(errors="replace")
            print(f"-- {test['name']}\n" + "\n".join(text.splitlines()[:30]), flush=True)
        return done.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        outcomes = list(pool.map(run_one, tests))
    return sum(outcomes), len(outcomes) - sum(outcomes)


def run_step(step: str) -> tuple[int, int]:
    compiler = find_compiler(step)
    if compiler is None:
        what = f" with -fsanitize={FLAGS[step]}" if step in FLAGS else ""
        print(f"== {step}: left out, there is no compiler{what}", flush=True)
        return 0, 0
    if step == "valgrind" and not shutil.which("valgrind"):
        print("== valgrind: left out, there is no valgrind", flush=True)
        return 0, 0
    print(f"== {step}: {compiler}", flush=True)
    try:
        folder = build(step, compiler)
    except subprocess.CalledProcessError:
        print(f"== {step}: cannot be built", flush=True)
        return 0, 1
    passed, failed = run_valgrind(folder) if step == "valgrind" else run_ctest(folder)
    print(f"== {step}: {passed} passed, {failed} failed", flush=True)
    return passed, failed


def main() -> int:
    steps = sys.argv[1:] or list(STEPS)
    if not set(steps) <= set(STEPS):
        print(f"sanitize: steps are {', '.join(STEPS)}")
        return 1
    if shutil.which("cmake") is None:
        print("sanitize: needs cmake; there is none here")
        return 1
    os.environ.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1")
    counts = [run_step(step) for step in steps]
    passed, failed = (sum(column) for column in zip(*counts, strict=True))
    print(f"sanitize: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
