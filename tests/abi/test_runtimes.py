"""Two libraries, built once, behave alike under every JAX: the running one, and releases
with older versions of XLA's FFI API, each in a process and an environment of its own.

Where versions differ, the difference stands in a test.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jaxlib
import jaxlibs
import numpy as np
import pytest
from runtimes_child import KINDS, REFUSALS

import jaxc
from jaxc.compiler import find_compiler
from jaxc.registration import api_version

HERE = Path(__file__).resolve().parent
SOURCES = {"handlers": HERE.parent / "python" / "handlers.c", "versatile": HERE / "versatile.c"}
#: One for each version of the API that no environment of the tests has.
OLD = [version for version in ("0.6.1", "0.8.1", "0.11.1") if version != jaxlib.__version__]

Outcome = dict[str, Any]


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("runtimes")
    out = {}
    for name, source in SOURCES.items():
        out[name] = str(folder / f"{name}.so")
        flags = ["-std=gnu11", "-O2", "-shared", "-fPIC", "-pthread"]
        flags += [f"-I{jaxc.include_dir()}", str(source), "-o", out[name]]
        find_compiler().run(flags, what=f"compiling {source.name}")
    return out


@pytest.fixture(params=["running", *OLD])
def outcome(request: pytest.FixtureRequest, libraries: dict[str, str]) -> Outcome:
    """What all calls came to under one version; see runtimes_child.py."""
    version = request.param
    python = sys.executable if version == "running" else jaxlibs.python_with(version)
    done = run(python, libraries["handlers"], libraries["versatile"])
    assert done.returncode == 0, f"JAX {version}: status {done.returncode}\n{done.stderr}"
    out: Outcome = json.loads(done.stdout)
    if version == "running":
        runtime = api_version()
        assert runtime is not None
        out["minor"] = runtime[1]
    else:
        assert out["jaxlib"] == version
        out["minor"] = jaxlibs.RELEASES[version][0]
    return out


@functools.cache
def run(python: str, handlers: str, versatile: str) -> subprocess.CompletedProcess[str]:
    # Nothing of this environment, and no other platform than the CPU.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "XLA_"))}
    return subprocess.run(
        [python, str(HERE / "runtimes_child.py"), handlers, versatile],
        env=environment | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_handler_is_registered(outcome: Outcome) -> None:
    assert set(outcome["registered"].values()) == {None}
    assert outcome["again"] is None


def test_a_handler_that_needs_a_newer_runtime_is_refused_by_it(outcome: Outcome) -> None:
    needs = {"NeedsTwo": 2, "NeedsFive": 5, "Newer": 9, "Future": 6}
    for symbol, minor in needs.items():
        text = outcome["refused registrations"][symbol]
        if minor <= outcome["minor"]:
            assert text is None, symbol
        else:
            assert text is not None, symbol
            assert (
                f"because the handler's API version (0.{minor}) is incompatible with the "
                f"framework's API version (0.{outcome['minor']})"
            ) in text


def test_arrays_and_attributes_arrive(outcome: Outcome) -> None:
    x = np.linspace(-0.5, 0.5, 32, dtype=np.float32).reshape(8, 4)
    expected = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1)
    np.testing.assert_allclose(outcome["rms"], expected, rtol=1e-5)
    assert outcome["rms of nothing"] == []
    assert outcome["kinds"] == [
        1, -8, -16, -32, -(2.0**40), 200, 60000, 2**32 - 1, 2**31 - 1, 0.5, 0.25, 2, 4096, 3,
        ord("a"), 4, 7, 5, 4,
    ]  # fmt: skip


def test_a_state_goes_from_instantiate_to_execute(outcome: Outcome) -> None:
    x = np.linspace(-0.5, 0.5, 32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_allclose(outcome["scale"], 3 * x, rtol=1e-6)


def test_work_of_the_pool_is_finished_by_a_thread_after_the_return(outcome: Outcome) -> None:
    x = np.arange(1000, dtype=np.float32)
    for call, offset in (("first", 0), ("second", 1)):  # the state counts the calls
        y, tasks = outcome["pooled"][call]
        np.testing.assert_array_equal(y, 2 * x + offset)
        assert tasks == 10


def test_an_optional_attribute_has_its_default_or_its_value(outcome: Outcome) -> None:
    x = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(outcome["pooled"]["first"][0], 2 * x)
    np.testing.assert_array_equal(outcome["pooled"]["quarter"][0], x / 4)


def test_a_state_is_destroyed_with_its_program(outcome: Outcome) -> None:
    assert (outcome["pooled"]["alive"], outcome["pooled"]["left"]) == (1, 0)


def test_an_error_of_a_future_is_the_error_of_the_call(outcome: Outcome) -> None:
    assert outcome["pooled"]["failed"] == "ABORTED: Pooled: the work came to nothing"


def test_all_that_is_wrong_with_a_call_is_told_in_the_same_words(outcome: Outcome) -> None:
    assert outcome["wrong rms"] == (
        "INVALID_ARGUMENT: Rms: argument 0 ('x') has dtype float64, expected float32; "
        "result 0 ('y') has dtype int32, expected float32; attribute 'eps' has type float64, "
        "expected float32; attribute 'k' is not expected"
    )
    # These two fail in instantiate, where there are no arrays.
    assert outcome["wrong scale"] == (
        "INVALID_ARGUMENT: Scale: attribute 'scale' has type float64, expected int64"
    )
    assert outcome["pooled"]["wrong"] == (
        "INVALID_ARGUMENT: Pooled: attribute 'scale' has type float64, expected float32; "
        "attribute 'unknown' is not expected"
    )


def test_the_context_says_where_the_call_runs(outcome: Outcome) -> None:
    first, second = outcome["about"]["runs"]
    for run_ in (first, second):
        for minor, device, threads, options, *_ in run_:
            assert minor == outcome["minor"]
            assert device == 0
            assert threads >= 1
            # JAX has no way to set options yet: an empty dictionary where there can be any.
            assert options == (0 if minor >= 5 else -1)


def test_the_run_is_one_for_all_calls_of_an_execution_and_another_for_the_next(
    outcome: Outcome,
) -> None:
    first, second = ([tuple(call[4:]) for call in run_] for run_ in outcome["about"]["runs"])
    assert first[0] == first[1]
    assert second[0] == second[1]
    assert first[0] != second[0]


#: Refusals of the runtime, whose code the handler does not see before API 0.4.
BY_RUNTIME = {
    "stream": ("UNIMPLEMENTED", "stream: XLA FFI GPU context is not available"),
    "device memory": (
        "INVALID_ARGUMENT", "device memory: XLA FFI GPU context is not available"),
    "no state": ("NOT_FOUND", "state: State is not set"),
}  # fmt: skip


@pytest.mark.parametrize("what", BY_RUNTIME)
def test_a_refusal_of_the_runtime_is_the_error_of_the_call(outcome: Outcome, what: str) -> None:
    code, text = BY_RUNTIME[what]
    code = code if outcome["minor"] >= 4 else "UNKNOWN"
    assert outcome["refusals"][what] == f"{code}: Refused: {text}"


def test_a_state_of_another_type_is_refused(outcome: Outcome) -> None:
    code = "INVALID_ARGUMENT" if outcome["minor"] >= 4 else "UNKNOWN"
    text = outcome["refusals"]["other state"]
    assert text.startswith(f"{code}: Refused: state: Set state type id ")
    assert " does not match the requested one " in text


def test_a_second_state_of_a_call_site_is_refused(outcome: Outcome) -> None:
    code = "FAILED_PRECONDITION" if outcome["minor"] >= 4 else "UNKNOWN"
    expected = f"{code}: Twice: state: State is already set with a type id "
    assert outcome["twice"].startswith(expected)


#: What jaxc refuses itself, in the same words everywhere, and the first minor that has it.
BY_JAXC = {
    "options": (5, 0, "custom options: needs XLA FFI API 0.5, the runtime has 0.{minor}"),
    "extension": (4, "NOT_FOUND: Refused: extension is not there",
                  "a context extension: needs XLA FFI API 0.4, the runtime has 0.{minor}"),
    "initialize state": (
        3, "FAILED_PRECONDITION: Refused: there is no state of initialize on a CPU, where "
        "that stage does not run",
        "a state of initialize needs XLA FFI API 0.3, the runtime has 0.{minor}"),
}  # fmt: skip


@pytest.mark.parametrize("what", BY_JAXC)
def test_what_an_older_runtime_lacks_is_refused_and_not_called(
    outcome: Outcome, what: str
) -> None:
    first, expected, text = BY_JAXC[what]
    if outcome["minor"] < first:
        expected = f"UNIMPLEMENTED: Refused: {text.format(minor=outcome['minor'])}"
    assert outcome["refusals"][what] == expected


def test_a_second_future_is_refused_and_the_first_carries_it(outcome: Outcome) -> None:
    assert outcome["refusals"]["two futures"] == (
        "FAILED_PRECONDITION: Refused: a future is made once a call, in execute, by a handler"
    )


def test_too_many_blocks_of_memory_are_refused(outcome: Outcome) -> None:
    assert outcome["refusals"]["blocks"] == (
        "RESOURCE_EXHAUSTED: Refused: 1 bytes asked for while 16 blocks are held, the most a "
        "call may"
    )


# ---- jaxc.host against the runtime that it imitates ----


def host(outcome: Outcome, path: str, symbol: str, *arguments: Any, **given: Any) -> Any:
    """What the same call comes to without XLA, as runtimes_child.py writes it."""
    runtime = jaxc.host.Runtime(minor=outcome["minor"])
    try:
        out = jaxc.host.call(path, *arguments, symbol=symbol, runtime=runtime, **given)
    except jaxc.host.HostError as error:
        return f"{error.code}: {error}"
    values = [value.tolist() for value in out]
    return values[0] if len(values) == 1 else values


def without_ids(text: Any) -> Any:
    return re.sub(r"(?<=type id )\d+|(?<=requested one )\d+", "N", str(text))


@pytest.mark.parametrize("what", REFUSALS)
def test_the_host_refuses_as_the_runtime_does(
    outcome: Outcome, libraries: dict[str, str], what: str
) -> None:
    found = host(
        outcome, libraries["versatile"], "Refused",
        results=np.int32(0), attributes={"what": REFUSALS.index(what)},
    )  # fmt: skip
    assert without_ids(found) == without_ids(outcome["refusals"][what])


def test_the_host_refuses_a_second_state_as_the_runtime_does(
    outcome: Outcome, libraries: dict[str, str]
) -> None:
    found = host(
        outcome, libraries["versatile"], "Twice", results=np.int32(0), attributes={"what": 0}
    )
    assert without_ids(found) == without_ids(outcome["twice"])


def test_the_host_reports_wrong_calls_as_the_runtime_does(
    outcome: Outcome, libraries: dict[str, str]
) -> None:
    path, x = libraries["handlers"], np.zeros((8, 4), np.float32)
    assert outcome["wrong rms"] == host(
        outcome, path, "Rms", np.ones(3), results=np.int32(0), attributes={"eps": 1.0, "k": 1}
    )
    assert outcome["wrong scale"] == host(
        outcome, path, "Scale", x, results=x, attributes={"scale": 3.0}
    )


def test_the_host_gives_the_results_that_the_runtime_gives(
    outcome: Outcome, libraries: dict[str, str]
) -> None:
    x = np.linspace(-0.5, 0.5, 32, dtype=np.float32).reshape(8, 4)
    path = libraries["handlers"]
    assert outcome["rms"] == host(
        outcome, path, "Rms", x, results=x, attributes={"eps": np.float32(1)}
    )
    assert outcome["scale"] == host(
        outcome, path, "Scale", x, results=x, attributes={"scale": 3}
    )
    assert outcome["kinds"] == host(
        outcome, path, "Kinds", results=np.zeros(19), attributes=KINDS
    )


def test_the_host_waits_for_a_future_as_the_runtime_does(
    outcome: Outcome, libraries: dict[str, str]
) -> None:
    path, x = libraries["versatile"], np.arange(1000, dtype=np.float32)
    results = [x, np.int32(0)]
    assert outcome["pooled"]["quarter"] == host(
        outcome, path, "Pooled", x, results=results, attributes={"scale": np.float32(0.25)}
    )
    assert outcome["pooled"]["failed"] == host(
        outcome, path, "Pooled", x, results=results,
        attributes={"fail": "the work came to nothing"},
    )  # fmt: skip
