"""YAML as configuration is written in it: one document, no tags that build objects, no key given twice.

Only text comes in and plain data goes out. An error names the line and, for a repeated key, the path to it; never a
value, an anchor or a tag: an unquoted secret may be read as any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from insika.documents import Path, dotted
from insika.errors import InvalidConfiguration

_QUOTES_GRAMMAR_ONLY = re.compile(r"""(?:[^'"]|'(?:<[a-z ]+>|[^\w'\\]|\\[nrt])'|"'")*""")
"""The beginning of a parser's sentence in which only marks and names of the grammar are quoted."""


def parse_yaml(text: str, where: str) -> object:
    """The document that `text` holds; None for an empty one. JSON is YAML too.

    Raises InvalidConfiguration, with lines counted from 1, for what is not YAML and for every repeated key."""
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            repeated = list(_repeated_keys(node))
            data = None if node is None or repeated else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise InvalidConfiguration(where, [("", _not_yaml(error))]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidConfiguration(where, [("", f"line {line}: holds a character that YAML does not allow")]) from None
    except RecursionError:
        raise InvalidConfiguration(where, [("", "is nested too deeply")]) from None
    except (ValueError, AttributeError, KeyError):
        # Such as 2030-02-31; or, after a tag like !!bool, what the constructor looks up without a check.
        why = "holds something that looks like, or is tagged as, a date or a number and is none; put it in quotes"
        raise InvalidConfiguration(where, [("", why)]) from None
    if repeated:
        raise InvalidConfiguration(where, [(dotted(path), why) for path, why in repeated])
    return data


def _not_yaml(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1} column {mark.column + 1}: " if mark is not None else ""
    said = ", ".join(part for part in (error.context, error.problem) if part)
    return f"{place}is not YAML: {_without_content(said) or 'it cannot be read'}"


def _without_content(said: str) -> str:
    """`said` up to where it quotes the document."""
    quoted = _QUOTES_GRAMMAR_ONLY.match(said)
    kept = quoted[0] if quoted is not None else ""
    return said if kept == said else f"{kept.rstrip()} … (not shown, it may be a secret)"


def _repeated_keys(root: yaml.Node | None) -> Iterator[tuple[Path, str]]:
    """YAML 1.2 demands unique keys (section 3.2.1.1); the parser would keep the last one without a word."""
    pending: list[tuple[Path, yaml.Node]] = [] if root is None else [((), root)]
    looked_at: set[int] = set()
    while pending:
        path, node = pending.pop(0)
        if id(node) in looked_at:
            continue
        looked_at.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending.extend(((*path, at), inner) for at, inner in enumerate(node.value))
        elif isinstance(node, yaml.MappingNode):
            lines: dict[tuple[str, str], int] = {}
            for key, inner in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue  # not a string, and refused for that later
                line = key.start_mark.line + 1
                if (key.tag, key.value) in lines:
                    first = lines[key.tag, key.value]
                    yield (*path, key.value), f"line {line}: the key is given again, after line {first}"
                lines.setdefault((key.tag, key.value), line)
                pending.append(((*path, key.value), inner))
