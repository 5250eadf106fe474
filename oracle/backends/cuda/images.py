"""Read what a cubin, a PTX file or a `.cu` source holds, without a driver."""

from __future__ import annotations

import re
import struct

ELF_MAGIC = b"\x7fELF"
_SYMBOL_TABLE = 2  # sh_type
_FUNCTION = 2  # st_info, low four bits
_CUDA_ENTRY = 0x10  # st_other

_PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r"__global__\s+(?:(?:__launch_bounds__\s*\([^)]*\)|static|inline|__forceinline__)\s*)*"
    r"void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\("
)


def kernels_in_cubin(image: bytes) -> list[str]:
    """Return the kernel symbols of a cubin (64-bit ELF); none where it is not readable as one."""
    try:
        return sorted(_entry_symbols(image))
    except (struct.error, IndexError, ValueError):
        return []


def _entry_symbols(image: bytes) -> list[str]:
    (table,) = struct.unpack_from("<Q", image, 0x28)
    entry_size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", image, table + index * entry_size)
        for index in range(count)
    ]
    names = []
    for section in sections:
        if section[1] != _SYMBOL_TABLE:
            continue
        offset, size, strings = section[4], section[5], sections[section[6]][4]
        for at in range(offset, offset + size, 24):
            name, info, other = struct.unpack_from("<IBB", image, at)
            if info & 0xF == _FUNCTION and other & _CUDA_ENTRY:
                end = image.index(b"\0", strings + name)
                names.append(image[strings + name : end].decode())
    return names


def kernels_in_ptx(text: str) -> list[str]:
    """Return the entry names of a PTX module."""
    return sorted(set(_PTX_ENTRY.findall(_COMMENT.sub("", text))))


def kernels_in_source(text: str) -> list[str]:
    """Return the names after `__global__ void`: for messages only, macros are not expanded."""
    return sorted(set(_KERNEL.findall(_COMMENT.sub("", text))))
