"""Function descriptions to C: the row loops, the table, and the driver beneath them.

A library is linked from three kinds of object:

* the user's file with its row loops appended, so that the function inlines into the loop.
  The text is the preprocessor's output, in which no macro of the user is left;
* the table of <jaxc/library.h> with one handler for each function, without any of the
  user's text;
* the driver, the same for all libraries: <jaxc/batch.h> compiled once.

The functions of ``jaxc.bind`` are in other libraries: their row loops call them through
pointers, which one more unit fills.
"""

from jaxc.generate.loops import bound, loops
from jaxc.generate.table import DRIVER, table

__all__ = ["DRIVER", "bound", "loops", "table"]
