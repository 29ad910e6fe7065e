"""The error that a C file makes when jaxc reads it."""

from __future__ import annotations


class DeclarationError(ValueError):
    """Something in a C file that jaxc cannot accept, with its file and line."""

    def __init__(self, file: str, line: int, text: str):
        super().__init__(f"{file}:{line}: {text}")
        self.file = file
        self.line = line
        self.text = text
