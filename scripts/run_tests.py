"""Run the tests in C and in Python and count them together.

The C tests run with every C compiler found, and with sanitizers; the Python tests in every
environment under .venv. The last line is 'N passed, N failed, N skipped'; the exit status
is that of the whole.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def run(command: list[str], environment: dict[str, str] | None = None) -> int:
    return subprocess.run(
        command, cwd=ROOT, check=False, env={**os.environ, **(environment or {})}
    ).returncode


def read_junit(path: Path, status: int) -> Count:
    """Counts a JUnit report; a runner that failed without a failed test counts as one."""
    count = Count()
    if path.exists():
        for case in ET.parse(path).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                count.failed += 1
            elif case.find("skipped") is not None or case.get("status") == "disabled":
                count.skipped += 1
            else:
                count.passed += 1
    if status != 0 and count.failed == 0:
        count.failed = 1
    return count


def cmake() -> str:
    found = shutil.which("cmake")
    if found is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "cmake"], check=True)
        found = str(Path(sys.executable).parent / "cmake")
    return found


def c_tests() -> Count:
    total = Count()
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    configurations = [(name, False) for name in compilers] + [(compilers[-1], True)]
    for compiler, sanitize in configurations:
        title = f"{compiler}{' with sanitizers' if sanitize else ''}"
        print(f"== C tests: {title}", flush=True)
        folder = ROOT / "build" / f"c-{compiler}{'-sanitize' if sanitize else ''}"
        report = folder / "junit.xml"
        report.unlink(missing_ok=True)
        cxx = {"gcc": "g++", "clang": "clang++"}[compiler]
        environment = {"CC": compiler, "CXX": shutil.which(cxx) or cxx}
        configure = [cmake(), "-S", ".", "-B", str(folder), "-DJAXC_BUILD_TESTS=ON"]
        configure += [f"-DJAXC_SANITIZE={'ON' if sanitize else 'OFF'}", "-Wno-dev"]
        configure += ["-DCMAKE_RULE_MESSAGES=OFF"]
        status = run([*configure, "--log-level=WARNING"], environment)
        status = status or run([cmake(), "--build", str(folder), "-j2", "--", "-s"])
        if status == 0:
            ctest = str(Path(cmake()).parent / "ctest")
            options = ["--output-on-failure", "-j2", "--quiet", "--output-junit"]
            status = run([ctest, "--test-dir", str(folder), *options, str(report)])
        total.add(read_junit(report, status))
    return total


def python_tests() -> Count:
    """In all environments at once: most of the time, a test keeps one core busy."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    environments = [
        e for e in sorted((ROOT / ".venv").iterdir()) if (e / "bin/python").exists()
    ]
    running = []
    for environment in environments:
        report = folder / f"pytest-{environment.name}.xml"
        report.unlink(missing_ok=True)
        log = folder / f"pytest-{environment.name}.log"
        command = [environment / "bin/python", "-m", "pytest", "-q", f"--junitxml={report}"]
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, *sys.argv[1:]],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | ({"JAXC_TESTS_WITHOUT_C": "1"} if running else {}),
            )
        running.append((environment, process, log, report))
    total = Count()
    for environment, process, log, report in running:
        rest = "" if environment is environments[0] else ", without those of C alone"
        print(f"== Python tests: {describe(environment)}{rest}", flush=True)
        status = process.wait()
        print(log.read_text(errors="replace"), flush=True)
        total.add(read_junit(report, status))
    return total


def describe(environment: Path) -> str:
    what = "import sys, jax; print(f'Python {sys.version.split()[0]}, JAX {jax.__version__}')"
    command = [environment / "bin/python", "-c", what]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    return told.stdout.strip() or environment.name


def main() -> int:
    started = time.monotonic()
    total = c_tests()
    total.add(python_tests())
    print(f"== {time.monotonic() - started:.0f} seconds")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
