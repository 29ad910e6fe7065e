"""jaxc's own declarations of XLA's structs against the headers of jaxlib: of the installed
one, and of one release for each version of the API that jaxc knows.

What a version lacks or calls otherwise stands in the tables. They are complete: a struct, a
field or an enumerator that is in a header and in no table is a failure.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import jax
import jaxlib
import jaxlibs
import pytest

import jaxc
from jaxc.compiler import find_compiler
from jaxc.description import DTYPES

KNOWN = 5
VERSIONS = list(dict.fromkeys([*jaxlibs.RELEASES, jaxlib.__version__]))


@dataclasses.dataclass(frozen=True)
class Struct:
    """One struct of ours and its fields beside XLA's.

    ``fields`` are names that both have, or "ours=theirs"; "@3" behind one means from API
    0.3 on, "@-3" up to and with it.
    """

    ours: str
    theirs: str
    fields: str
    size: str = "sizeof"
    """How jaxc says its size, compared with XLA's _STRUCT_SIZE: the last field that counts,
    or an expression; "sizeof" where XLA defines none."""
    relation: str = "=="
    first: int = 1
    last: int = KNOWN

    def is_in(self, minor: int) -> bool:
        return self.first <= minor <= self.last or (self.last == KNOWN and minor > KNOWN)

    def pairs(self, minor: int) -> list[tuple[str, str]]:
        out = []
        for text in self.fields.split():
            names, _, limit = text.partition("@")
            if limit and not (minor >= int(limit) > 0 or minor <= -int(limit)):
                continue
            ours, _, theirs = names.partition("=")
            out.append((ours, theirs or ours))
        return out


HEAD = "struct_size extension_start "
CALL = HEAD + "context=ctx "
SINGLE = CALL + "u.single.type_id=type_id u.single.state=state "
STAGED = CALL + "u.staged.stage=stage u.staged.type_id=type_id u.staged.state=state"
SLOTS = """
    error_create=XLA_FFI_Error_Create error_details=XLA_FFI_Error_GetMessage@-3
    error_details=XLA_FFI_Error_GetDetails@4 error_destroy=XLA_FFI_Error_Destroy
    handler_register=XLA_FFI_Handler_Register stream=XLA_FFI_Stream_Get
    type_register=XLA_FFI_TypeId_Register@-1 type_register=XLA_FFI_Type_Register@2
    user_data=XLA_FFI_ExecutionContext_Get@-3 user_data=XLA_FFI_InvokeContext_Get@4
    state_set=XLA_FFI_State_Set state_get=XLA_FFI_State_Get
    memory_allocate=XLA_FFI_DeviceMemory_Allocate memory_free=XLA_FFI_DeviceMemory_Free
    schedule=XLA_FFI_ThreadPool_Schedule thread_count=XLA_FFI_ThreadPool_NumThreads
    future_create=XLA_FFI_Future_Create future_available=XLA_FFI_Future_SetAvailable
    future_error=XLA_FFI_Future_SetError run_id=XLA_FFI_RunId_Get
    device_ordinal=XLA_FFI_DeviceOrdinal_Get
    find_extension=XLA_FFI_InvokeContext_FindExtension@4
    options=XLA_FFI_CustomOptions_Get@5"""

STRUCTS = [
    Struct("jaxc_abi_extension", "XLA_FFI_Extension_Base", "struct_size type next", "next",
           last=3),
    Struct("jaxc_abi_extension", "XLA_FFI_InternalExtension", "struct_size type next", "next",
           first=4),
    Struct("jaxc_abi_version", "XLA_FFI_Api_Version", HEAD + "major_version minor_version",
           "minor_version"),
    Struct("jaxc_abi_metadata", "XLA_FFI_Metadata",
           "struct_size api_version traits state_type_id@2", "traits"),
    Struct("jaxc_abi_metadata_extension", "XLA_FFI_Metadata_Extension",
           "base=extension_base metadata", "metadata"),
    Struct("jaxc_abi_span", "XLA_FFI_ByteSpan", "ptr len"),
    Struct("jaxc_abi_scalar", "XLA_FFI_Scalar", "dtype value"),
    Struct("jaxc_abi_array", "XLA_FFI_Array", "dtype size data"),
    Struct("jaxc_abi_buffer", "XLA_FFI_Buffer", HEAD + "dtype data rank dims", "dims"),
    Struct("jaxc_abi_operands", "XLA_FFI_Args", HEAD + "size types data=args", "data"),
    Struct("jaxc_abi_operands", "XLA_FFI_Rets", HEAD + "size types data=rets", "data"),
    Struct("jaxc_abi_attrs", "XLA_FFI_Attrs", HEAD + "size types names data=attrs", "data"),
    Struct("jaxc_abi_call_frame", "XLA_FFI_CallFrame",
           HEAD + "api context=ctx stage args results=rets attrs future",
           "JAXC_ABI_FRAME_SIZE"),
    # The table: up to API 0.5 it ends with the last slot of the version.
    Struct("jaxc_abi_api", "XLA_FFI_Api", HEAD + "api_version internal_api " + SLOTS,
           "device_ordinal", last=3),
    Struct("jaxc_abi_api", "XLA_FFI_Api", HEAD + "api_version internal_api " + SLOTS,
           "find_extension", first=4, last=4),
    Struct("jaxc_abi_api", "XLA_FFI_Api", HEAD + "api_version internal_api " + SLOTS,
           "options", first=5),
    Struct("jaxc_abi_error_create_args", "XLA_FFI_Error_Create_Args",
           HEAD + "message code=errc", "code"),
    Struct("jaxc_abi_error_details_args", "XLA_FFI_Error_GetMessage_Args",
           HEAD + "error message", "message", last=3),
    Struct("jaxc_abi_error_details_args", "XLA_FFI_Error_GetDetails_Args",
           HEAD + "error message code=errc", "code", first=4),
    Struct("jaxc_abi_error_destroy_args", "XLA_FFI_Error_Destroy_Args", HEAD + "error", "error"),
    Struct("jaxc_abi_bundle", "XLA_FFI_Handler_Bundle",
           "instantiate prepare initialize execute", last=3),
    # And a fifth handler, for recording, which jaxc has no place for.
    Struct("jaxc_abi_bundle", "XLA_FFI_Handler_Bundle",
           "instantiate prepare initialize execute", "sizeof + sizeof(void *)", first=4),
    Struct("jaxc_abi_handler_register_args", "XLA_FFI_Handler_Register_Args",
           HEAD + "name platform bundle traits", "traits", last=3),
    # The longer bundle moves the traits.
    Struct("jaxc_abi_handler_register_args", "XLA_FFI_Handler_Register_Args",
           HEAD + "name platform", "JAXC_ABI_SIZE(OURS, traits) + sizeof(void *)", first=4),
    Struct("jaxc_abi_stream_args", "XLA_FFI_Stream_Get_Args", CALL + "stream", "stream"),
    Struct("jaxc_abi_type_id", "XLA_FFI_TypeId", "type_id"),
    Struct("jaxc_abi_type_info", "XLA_FFI_TypeInfo", HEAD + "deleter", "deleter", first=2),
    Struct("jaxc_abi_type_register_args", "XLA_FFI_TypeId_Register_Args",
           HEAD + "name type_id", "type_id", last=1),
    Struct("jaxc_abi_type_register_args", "XLA_FFI_Type_Register_Args",
           HEAD + "name type_id type_info", "type_id", first=2),
    Struct("jaxc_abi_user_data_args", "XLA_FFI_ExecutionContext_Get_Args",
           CALL + "type_id data", "data", last=3),
    Struct("jaxc_abi_user_data_args", "XLA_FFI_InvokeContext_Get_Args",
           CALL + "type_id data", "data", first=4),
    Struct("jaxc_abi_state_args", "XLA_FFI_State_Set_Args", SINGLE + "u.single.deleter=deleter",
           "JAXC_ABI_STATE_SIZE", last=1),
    # The deleter has gone, and jaxc goes on to pass it: a larger size is accepted.
    Struct("jaxc_abi_state_args", "XLA_FFI_State_Set_Args", SINGLE,
           "JAXC_ABI_STATE_SIZE", relation=">=", first=2, last=2),
    Struct("jaxc_abi_state_args", "XLA_FFI_State_Set_Args", STAGED, "JAXC_ABI_STATE_SIZE",
           first=3),
    Struct("jaxc_abi_state_args", "XLA_FFI_State_Get_Args", SINGLE,
           "JAXC_ABI_STATE_SIZE_GET_SINGLE", last=2),
    Struct("jaxc_abi_state_args", "XLA_FFI_State_Get_Args", STAGED, "JAXC_ABI_STATE_SIZE",
           first=3),
    Struct("jaxc_abi_memory_allocate_args", "XLA_FFI_DeviceMemory_Allocate_Args",
           CALL + "size alignment data", "data"),
    Struct("jaxc_abi_memory_free_args", "XLA_FFI_DeviceMemory_Free_Args", CALL + "size data",
           "data"),
    Struct("jaxc_abi_schedule_args", "XLA_FFI_ThreadPool_Schedule_Args", CALL + "task data",
           "data"),
    Struct("jaxc_abi_thread_count_args", "XLA_FFI_ThreadPool_NumThreads_Args",
           CALL + "thread_count=num_threads", "thread_count"),
    Struct("jaxc_abi_future_create_args", "XLA_FFI_Future_Create_Args", HEAD + "future",
           "offsetof(OURS, future)"),
    Struct("jaxc_abi_future_available_args", "XLA_FFI_Future_SetAvailable_Args",
           HEAD + "future", "future"),
    Struct("jaxc_abi_future_error_args", "XLA_FFI_Future_SetError_Args",
           HEAD + "future error", "error"),
    Struct("jaxc_abi_run_id_args", "XLA_FFI_RunId_Get_Args", CALL + "run_id", "run_id"),
    Struct("jaxc_abi_device_ordinal_args", "XLA_FFI_DeviceOrdinal_Get_Args",
           CALL + "device_ordinal", "device_ordinal"),
    Struct("jaxc_abi_context_extension", "XLA_FFI_Extension",
           "struct_size id id.extension_type id.major_version id.minor_version next", "next",
           first=4),
    Struct("jaxc_abi_find_extension_args", "XLA_FFI_InvokeContext_FindExtension_Args",
           CALL + "extension_type extension", "extension", first=4),
    Struct("jaxc_abi_options_args", "XLA_FFI_CustomOptions_Get_Args", CALL + "attrs", "attrs",
           first=5),
]  # fmt: skip

#: Of theirs that no struct of ours stands for: its fields are in jaxc_abi_context_extension.
UNNAMED = {"XLA_FFI_ExtensionId"}

#: Fields of theirs without a place in ours, from API 0.4 on, as the table says.
LEFT_OUT = {"XLA_FFI_Handler_Bundle": {"record"},
            "XLA_FFI_Handler_Register_Args": {"bundle", "traits"}}  # fmt: skip


def enumerators(theirs: str, ours: str, names: str) -> dict[str, str]:
    """Theirs -> ours."""
    return {f"{theirs}{name}": f"{ours}{name}" for name in names.split()}


CONSTANTS = {
    **enumerators("XLA_FFI_DataType_", "JAXC_DTYPE_", "INVALID"),
    **enumerators("XLA_FFI_DataType_", "JAXC_", """
        PRED S1 S2 S4 S8 S16 S32 S64 U1 U2 U4 U8 U16 U32 U64 F16 F32 F64 BF16 C64 C128 TOKEN
        F8E5M2 F8E3M4 F8E4M3 F8E4M3FN F8E4M3B11FNUZ F8E5M2FNUZ F8E4M3FNUZ F4E2M1FN F8E8M0FNU
        """),
    **enumerators("XLA_FFI_ExecutionStage_", "JAXC_STAGE_",
                  "INSTANTIATE PREPARE INITIALIZE EXECUTE RECORD"),
    **enumerators("XLA_FFI_Error_Code_", "JAXC_", """
        OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS
        PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE
        UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"""),
    **enumerators("XLA_FFI_AttrType_", "JAXC_ABI_ATTR_", "ARRAY DICTIONARY SCALAR STRING"),
    "XLA_FFI_ArgType_BUFFER": "JAXC_ABI_BUFFER",
    "XLA_FFI_RetType_BUFFER": "JAXC_ABI_BUFFER",
    "XLA_FFI_Extension_Metadata": "JAXC_ABI_EXTENSION_METADATA",
    "XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE": "JAXC_TRAIT_COMMAND_BUFFER",
}  # fmt: skip

#: Enumerators that came later; the first minor that has them.
NEW_CONSTANTS = {"XLA_FFI_ExecutionStage_RECORD": 4}


def compare(include: Path, tmp_path: Path, lines: list[str]) -> None:
    source = "\n".join(["#include <jaxc/jaxc.h>", '#include "xla/ffi/api/c_api.h"', *lines, ""])
    path = tmp_path / "layout.c"
    path.write_text(source)
    flags = [f"-I{jaxc.include_dir()}", f"-I{include}", "-fsyntax-only"]
    find_compiler().run([*flags, str(path)], what=f"comparing with {include}")


def claim(condition: str, text: str) -> str:
    return f'_Static_assert({condition}, "{text}");'


def claims(struct: Struct, minor: int) -> list[str]:
    """What must hold for a struct and the header of that minor."""
    # Some of ours have no typedef, and a typedef of theirs is not more than a name.
    ours, theirs = f"TYPE_{struct.ours}", struct.theirs
    lines = []
    for mine, other in struct.pairs(minor):
        name = f"{theirs}.{other}"
        lines.append(
            claim(
                f"offsetof({ours}, {mine}) == offsetof({theirs}, {other})", f"place of {name}"
            )
        )
        lines.append(
            claim(f"sizeof((({ours} *)0)->{mine}) == sizeof((({theirs} *)0)->{other})",
                  f"size of {name}")
        )  # fmt: skip
    if struct.size.startswith("sizeof"):
        size, expected = (
            struct.size.replace("sizeof", f"sizeof({ours})", 1),
            f"sizeof({theirs})",
        )
    else:
        expected = f"{theirs}_STRUCT_SIZE"
        size = struct.size.replace("OURS", ours)
        if re.fullmatch("[a-z_]+", size):
            size = f"JAXC_ABI_SIZE({ours}, {size})"
    lines.append(claim(f"{size} {struct.relation} {expected}", f"{theirs}_STRUCT_SIZE"))
    return lines


def type_names() -> list[str]:
    text = (Path(jaxc.include_dir()) / "jaxc" / "abi.h").read_text()
    text += (Path(jaxc.include_dir()) / "jaxc" / "runtime.h").read_text()
    defined = {s.ours: re.search(rf"}} {s.ours};", text) is not None for s in STRUCTS}
    return [
        f"typedef {'' if has_typedef else 'struct '}{name} TYPE_{name};"
        for name, has_typedef in defined.items()
    ]


def minor_of(include: Path) -> int:
    found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", jaxlibs.header(include).read_text())
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_every_struct_and_constant_is_as_in(tmp_path: Path, version: str) -> None:
    include = jaxlibs.include_dir(version)
    minor = minor_of(include)
    lines = type_names()
    for struct in STRUCTS:
        if struct.is_in(minor):
            lines += claims(struct, minor)
    for theirs, ours in CONSTANTS.items():
        if NEW_CONSTANTS.get(theirs, 1) <= minor:
            lines.append(claim(f"(int){ours} == (int){theirs}", theirs))
    lines.append(claim("JAXC_ABI_MAJOR == XLA_FFI_API_MAJOR", "the major version"))
    lines.append(claim("JAXC_ABI_MINOR <= XLA_FFI_API_MINOR", "the announced version"))
    compare(include, tmp_path, lines)


@pytest.mark.parametrize("version", jaxlibs.RELEASES)
def test_nothing_is_left_out_of(version: str) -> None:
    include = jaxlibs.include_dir(version)
    text = without_comments(jaxlibs.header(include).read_text())
    minor = minor_of(include)
    assert minor == jaxlibs.RELEASES[version][0]
    structs = fields_of(text)
    ours = [struct for struct in STRUCTS if struct.is_in(minor)]
    assert {struct.theirs for struct in ours} == set(structs) - UNNAMED
    for struct in ours:
        given = {other for _, other in struct.pairs(minor) if "." not in other}
        extra = LEFT_OUT.get(struct.theirs, set()) if minor >= 4 else set()
        assert given | extra == structs[struct.theirs], struct.theirs
    values = set(re.findall(r"\b(XLA_FFI_\w+) = (?!XLA_FFI_STRUCT_SIZE)", text))
    assert values == {n for n in CONSTANTS if NEW_CONSTANTS.get(n, 1) <= minor}


def test_every_struct_of_ours_is_compared() -> None:
    include = Path(jaxc.include_dir()) / "jaxc"
    found = fields_of(without_comments((include / "abi.h").read_text()))
    found |= fields_of(without_comments((include / "runtime.h").read_text()))
    assert set(found) == {struct.ours for struct in STRUCTS}
    for name in set(found) - {"jaxc_abi_state_args"}:  # two layouts in a union
        given = {
            mine.split(".")[0]
            for struct in STRUCTS
            if struct.ours == name
            for minor in range(1, KNOWN + 1)
            if struct.is_in(minor)
            for mine, _ in struct.pairs(minor)
        }
        assert given == found[name], name


def test_the_newest_known_version_is_the_newest_that_is_compared() -> None:
    text = (Path(jaxc.include_dir()) / "jaxc" / "abi.h").read_text()
    known = re.search(r"#define JAXC_ABI_MINOR_KNOWN (\d+)", text)
    assert known is not None
    assert int(known[1]) == KNOWN == max(minor for minor, _, _ in jaxlibs.RELEASES.values())


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def fields_of(text: str) -> dict[str, set[str]]:
    """Structs with their own fields; what is nested in a field is its own affair."""
    out = {}
    for match in re.finditer(r"\b(?:typedef )?struct (?:(\w+) )?\{", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        after = re.match(r" (\w+);", text[end:])
        name = after[1] if after else match[1]
        if name is None or ("abi" not in name and "XLA_FFI" not in name):
            continue
        body = text[match.end() : end - 1]
        while "{" in body:
            body = re.sub(r"\{[^{}]*\}", "", body)
        out[name] = {
            named[1] or named[2] or named[3]
            for named in re.finditer(
                r"(?:\(\*(\w+)\)\([^;]*\)|_XLA_FFI_API_STRUCT_FIELD\((\w+)\)|(\w+))\s*;", body
            )
        }
    return out


def test_a_difference_would_be_found(tmp_path: Path) -> None:
    wrong = [claim("(int)JAXC_S8 == (int)JAXC_S16", "wrong")]
    with pytest.raises(RuntimeError, match=r"static.assert(ion)? failed"):
        compare(Path(jax.ffi.include_dir()), tmp_path, wrong)


def test_numbers_in_python_are_those_in_c(tmp_path: Path) -> None:
    names = {"bool": "PRED", "bfloat16": "BF16", "float8_e5m2": "F8E5M2",
             "float8_e4m3fn": "F8E4M3FN", "complex64": "C64", "complex128": "C128"}  # fmt: skip
    lines = []
    for number, dtype in DTYPES.items():
        kind = {"i": "S", "u": "U", "f": "F"}.get(dtype.kind, "")
        name = names.get(dtype.name, f"{kind}{8 * dtype.itemsize}")
        lines.append(claim(f"(int)JAXC_{name} == {number}", name))
        lines.append(f"static const int size_{number} = JAXC_{name}; ")
    compare(Path(jax.ffi.include_dir()), tmp_path, lines)
