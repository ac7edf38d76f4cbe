"""Tools: typed functions that a model may call. These are the names that a module of tools needs."""

from insika.messages import Halt
from insika.tools.python_tools import collect, tool
from insika.tools.tool import OutcomeUnknown, Tool, ToolContext, ToolError

__all__ = ["Halt", "OutcomeUnknown", "Tool", "ToolContext", "ToolError", "collect", "tool"]
