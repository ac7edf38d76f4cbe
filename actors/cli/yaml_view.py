"""Documents as YAML, for people to read."""

from __future__ import annotations

from typing import Any

import click
import yaml

from actors.cli.output import printable


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that they read as they were written."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def print_yaml(document: Any) -> None:
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=80)
    click.echo(printable(text), nl=False)
