"""C text to function descriptions. Pure: text in, descriptions out, no files or processes."""

from jaxc.declare.errors import DeclarationError
from jaxc.declare.functions import Unit, declare, require_declarations

__all__ = ["DeclarationError", "Unit", "declare", "require_declarations"]
