"""jaxc's own declarations of XLA's structs against the header of the installed jaxlib."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jaxlib
import pytest

import jaxc
from jaxc.compiler import find_compiler
from jaxc.description import DTYPES

HEADER = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"

#: ours, theirs, {our field: their field}
STRUCTS = [
    ("jaxc_abi_version", "XLA_FFI_Api_Version",
     "struct_size extension_start major_version minor_version"),
    ("jaxc_abi_metadata", "XLA_FFI_Metadata", "struct_size api_version traits state_type_id"),
    ("jaxc_abi_metadata_extension", "XLA_FFI_Metadata_Extension", "base=extension_base metadata"),
    ("jaxc_abi_span", "XLA_FFI_ByteSpan", "ptr len"),
    ("jaxc_abi_scalar", "XLA_FFI_Scalar", "dtype value"),
    ("jaxc_abi_array", "XLA_FFI_Array", "dtype size data"),
    ("jaxc_abi_buffer", "XLA_FFI_Buffer",
     "struct_size extension_start dtype data rank dims"),
    ("jaxc_abi_operands", "XLA_FFI_Args", "struct_size extension_start size types data=args"),
    ("jaxc_abi_operands", "XLA_FFI_Rets", "struct_size extension_start size types data=rets"),
    ("jaxc_abi_attrs", "XLA_FFI_Attrs", "struct_size extension_start size types names data=attrs"),
    ("jaxc_abi_error_create_args", "XLA_FFI_Error_Create_Args",
     "struct_size extension_start message code=errc"),
    ("jaxc_abi_api", "XLA_FFI_Api",
     "struct_size extension_start api_version internal_api error_create=XLA_FFI_Error_Create"),
    ("jaxc_abi_call_frame", "XLA_FFI_CallFrame",
     "struct_size extension_start api context=ctx stage args results=rets attrs"),
]  # fmt: skip

#: ours -> theirs
CONSTANTS = {
    **{f"JAXC_{name}": f"XLA_FFI_DataType_{name}" for name in
       ["PRED", "S8", "S16", "S32", "S64", "U8", "U16", "U32", "U64", "F16", "F32", "F64", "C64", "BF16", "TOKEN", "C128", "F8E5M2", "F8E4M3FN"]},
    **{f"JAXC_STAGE_{name}": f"XLA_FFI_ExecutionStage_{name}" for name in
       ["INSTANTIATE", "PREPARE", "INITIALIZE", "EXECUTE"]},
    **{f"JAXC_{name}": f"XLA_FFI_Error_Code_{name}" for name in
       ["OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"]},
    **{f"JAXC_ABI_ATTR_{name}": f"XLA_FFI_AttrType_{name}" for name in
       ["ARRAY", "DICTIONARY", "SCALAR", "STRING"]},
    "JAXC_ABI_BUFFER": "XLA_FFI_ArgType_BUFFER",
    "JAXC_ABI_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata",
    "JAXC_ABI_MAJOR": "XLA_FFI_API_MAJOR",
}  # fmt: skip


def compare(tmp_path: Path, lines: list[str]) -> None:
    source = "\n".join(["#include <jaxc/jaxc.h>", '#include "xla/ffi/api/c_api.h"', *lines, ""])
    path = tmp_path / "layout.c"
    path.write_text(source)
    flags = [f"-I{jaxc.include_dir()}", f"-I{jax.ffi.include_dir()}", "-fsyntax-only"]
    find_compiler().run([*flags, str(path)], what=f"comparing with jaxlib {jaxlib.__version__}")


@pytest.mark.parametrize(("ours", "theirs", "fields"), STRUCTS, ids=[s[1] for s in STRUCTS])
def test_struct(tmp_path: Path, ours: str, theirs: str, fields: str) -> None:
    lines = []
    for field in fields.split():
        mine, _, other = field.partition("=")
        other = other or mine
        for text in (
            f"offsetof({ours}, {mine}) == offsetof({theirs}, {other})",
            f"sizeof((({ours} *)0)->{mine}) == sizeof((({theirs} *)0)->{other})",
        ):
            lines.append(f'_Static_assert({text}, "{theirs}.{other}");')
    compare(tmp_path, lines)


def test_constants(tmp_path: Path) -> None:
    compare(tmp_path, [
        f'_Static_assert((int){ours} == (int){theirs}, "{theirs}");'
        for ours, theirs in CONSTANTS.items()
    ])  # fmt: skip


def test_a_difference_would_be_found(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="static assertion failed"):
        compare(tmp_path, ['_Static_assert((int)JAXC_S8 == (int)JAXC_S16, "wrong");'])


def test_the_announced_version_is_within_the_installed_one() -> None:
    minor = re.search(r"#define XLA_FFI_API_MINOR (\d+)", HEADER.read_text())
    assert minor is not None
    assert int(minor[1]) >= 1


def test_numbers_in_python_are_those_in_c(tmp_path: Path) -> None:
    names = {"bool": "PRED", "bfloat16": "BF16", "float8_e5m2": "F8E5M2",
             "float8_e4m3fn": "F8E4M3FN", "complex64": "C64", "complex128": "C128"}  # fmt: skip
    lines = []
    for number, dtype in DTYPES.items():
        kind = {"i": "S", "u": "U", "f": "F"}.get(dtype.kind, "")
        name = names.get(dtype.name, f"{kind}{8 * dtype.itemsize}")
        lines.append(f'_Static_assert((int)JAXC_{name} == {number}, "{name}");')
        lines.append(f"static const int size_{number} = JAXC_{name}; ")
    compare(tmp_path, lines)
