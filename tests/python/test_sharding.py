"""Calls on several devices: divided by leading axes, without a collective or a callback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHILD = Path(__file__).parent / "sharding_child.py"

Outcome = dict[str, Any]


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """Of the calls on four devices, which a process must ask for before JAX starts."""
    done = subprocess.run(
        [sys.executable, str(CHILD)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    out: Outcome = json.loads(done.stdout.splitlines()[-1])
    return out


def test_every_mix_of_shardings_gives_the_right_numbers(outcome: Outcome) -> None:
    wrong = [name for name, case in outcome["automatic"].items() if not case["right"]]
    assert wrong == []
    assert len(outcome["automatic"]) == 43


@pytest.mark.parametrize(
    "name",
    [
        *("batch", "none", "rank 0", "values", "inout", "vmap", "grad", "jvp"),
        "spmd_axis_name",
        "mix P('x',) P()",
        "mix P('y', 'x') P()",
    ],
)
def test_what_is_sharded_by_leading_axes_moves_nothing(outcome: Outcome, name: str) -> None:
    assert outcome["automatic"][name]["collectives"] == []


def test_results_are_sharded_as_the_operands(outcome: Outcome) -> None:
    assert outcome["automatic"]["batch"]["specs"] == ["P('x',)"] * 2
    assert outcome["automatic"]["values"]["specs"] == ["P('x', 'y')"]
    name = "mix P('y', 'x') P()"
    assert outcome["automatic"][name]["specs"] == ["P('y', 'x')"] * 2


def test_a_core_axis_that_is_sharded_is_gathered(outcome: Outcome) -> None:
    assert outcome["automatic"]["core"]["collectives"] == ["all-gather"]
    assert outcome["automatic"]["both"]["specs"] == ["P('x',)"] * 2


def test_inside_shard_map_each_device_calls_its_own_part(outcome: Outcome) -> None:
    assert len(outcome["manual"]) == 5
    for name, case in outcome["manual"].items():
        assert case["right"], name
        assert case["collectives"] == [], name


def test_effects_of_several_devices_have_no_order(outcome: Outcome) -> None:
    assert outcome["effects"]["manual"]
    assert outcome["effects"]["automatic"] == (
        "noted: has effects, and this program is for several devices, on "
        "which they would have no order; call it inside jax.shard_map, where each device calls "
        "it for itself"
    )


GATHER = (
    "times: argument 'x' is sharded over 4 devices on its core axis 0, which the function "
    "needs whole"
)


def test_a_gather_is_one_warning(outcome: Outcome) -> None:
    found = outcome["gathers"]
    assert found["allowed"] == "done"
    assert found["warnings"] == [f"GatherWarning: {GATHER}: it is gathered"]


@pytest.mark.parametrize("which", ["forbidden", "forbidden for it"])
def test_a_gather_can_be_forbidden(outcome: Outcome, which: str) -> None:
    assert f"ValueError: {GATHER}, and gathering is forbidden" in outcome["gathers"][which]
    assert outcome["gathers"]["another"] == "done"


def test_the_gradient_of_a_shared_operand_is_summed_over_the_devices(outcome: Outcome) -> None:
    assert outcome["automatic"]["grad of w"]["collectives"] == ["all-reduce"]


def test_the_program_names_the_target_and_no_address(outcome: Outcome) -> None:
    text = outcome["program"]["text"]
    assert text.count("stablehlo.custom_call @jaxc") + text.count('custom_call @"jaxc') == 1
    assert "sdy.sharding_rule" in text
    assert "CustomSPMDPartitioning" not in text
    assert "sharding_rule" not in outcome["program"]["alone"]


def test_explicit_mode_has_shardings_in_its_types(outcome: Outcome) -> None:
    found = outcome["explicit"]
    assert found["call"] == "float32[4@x,8@y,16]"
    assert found["collectives"] == []
    assert found["right"]
    assert found["grad"] == ["float32[4@x,8@y,16]", "float32[16]"]
    assert found["grad is right"]
    assert found["jvp"] == "float32[4@x,8@y,16]"
    assert found["vmap"] == "float32[4@x,8@y,16]"


def test_explicit_mode_gathers_nothing_by_itself(outcome: Outcome) -> None:
    found = outcome["explicit"]
    assert found["core"] == (
        "times: argument 'x' is sharded over mesh axis 'x' on its core axis 0, which the "
        "function needs whole; jax.sharding.reshard it first"
    )
    assert found["conflict"] == (
        "times: leading axis -1 is sharded over mesh axis 'y' in 'x' and over 'x' in 'w'; "
        "jax.sharding.reshard one of them first"
    )
    assert found["twice"] == (
        "times: mesh axis 'x' shards more than one leading axis of the call: 'x', 'w'"
    )
