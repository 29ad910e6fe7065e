"""C text to function descriptions. Pure: text in, descriptions out, no files or processes."""

from jaxc.declare.errors import DeclarationError
from jaxc.declare.functions import Unit, declare

__all__ = ["DeclarationError", "Unit", "declare"]
