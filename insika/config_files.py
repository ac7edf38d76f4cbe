"""Reads profiles and settings from files. The only room here that touches the disk for them.

YAML by default; a file that ends in `.json` is read as JSON. Every error names the file.
"""

from __future__ import annotations

from pathlib import Path

from insika.agents.profile import Profile, load_profile
from insika.documents import parse_json
from insika.errors import InvalidConfiguration
from insika.settings import Settings, load_settings
from insika.yaml_text import parse_yaml

_SUFFIXES = (".yaml", ".yml", ".json")
_MAX_BYTES = 4 * 1024 * 1024


def load_profile_file(path: Path) -> Profile:
    """The profile in the file at `path`. Raises InvalidConfiguration, also for a file that cannot be read."""
    return load_profile(_parsed(path), str(path))


def load_settings_file(path: Path) -> Settings:
    """The settings in the file at `path`. Raises InvalidConfiguration, also for a file that cannot be read."""
    return load_settings(_parsed(path), str(path))


def load_profile_folder(folder: Path) -> tuple[Profile, ...]:
    """The profiles in the `.yaml`, `.yml` and `.json` files of `folder`, by file name; folders in it and hidden files
    are not looked at. Raises InvalidConfiguration listing the mistakes of all files, each path with its file in front,
    and naming ids that two files give."""
    profiles: list[Profile] = []
    problems: list[tuple[str, str]] = []
    owners: dict[str, str] = {}
    for path in _configuration_files(folder):
        try:
            profile = load_profile_file(path)
        except InvalidConfiguration as error:
            problems.extend((f"{path.name}: {field}" if field else path.name, why) for field, why in error.problems)
            continue
        if profile.id in owners:
            problems.append((f"{path.name}: id", f"is the id of {owners[profile.id]} already"))
        owners.setdefault(profile.id, path.name)
        profiles.append(profile)
    if problems:
        raise InvalidConfiguration(str(folder), problems)
    return tuple(profiles)


def _configuration_files(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidConfiguration(str(folder), [("", f"cannot be read: {error.strerror}")]) from None
    return [
        path for path in entries if path.suffix in _SUFFIXES and not path.name.startswith(".") and not path.is_dir()
    ]


def _parsed(path: Path) -> object:
    where = str(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidConfiguration(where, [("", f"cannot be read: {error.strerror}")]) from None
    if len(raw) > _MAX_BYTES:
        raise InvalidConfiguration(where, [("", f"must have at most {_MAX_BYTES} bytes, got {len(raw)}")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidConfiguration(where, [("", f"line {line}: is not UTF-8")]) from None
    if path.suffix != ".json":
        return parse_yaml(text, where)
    try:
        return parse_json(text)
    except ValueError as error:
        raise InvalidConfiguration(where, [("", f"is not JSON: {error}")]) from None
