from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from insika.choices import Thinking
from insika.config_files import load_profile_file, load_profile_folder, load_settings_file
from insika.errors import InvalidConfiguration

EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
SECRET = "whsec_" + base64.b64encode(b"0" * 24).decode()


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path: Path) -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile_file(path)
    assert caught.value.where == str(path)
    return dict(caught.value.problems)


def test_the_examples_are_valid() -> None:
    profiles = load_profile_folder(EXAMPLES)
    assert "store-support" in [profile.id for profile in profiles]
    assert all(profile.provider == "offline" for profile in profiles)


def test_yaml_and_json_make_the_same_profile(tmp_path: Path) -> None:
    data = {"id": "a", "model": "offline/demo", "limits": {"queue_mode": "steer"}}
    as_json = write(tmp_path, "a.json", json.dumps(data, indent="\t"))
    as_yaml = write(tmp_path, "a.yaml", "\ufeffmodel: offline/demo\nid: a\nlimits:\n  queue_mode: steer\n")
    assert load_profile_file(as_json) == load_profile_file(as_yaml)
    assert load_profile_file(as_json).revision() == load_profile_file(as_yaml).revision()


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("off", Thinking.OFF),
        ("no", Thinking.OFF),
        ("false", Thinking.OFF),
        ("on", Thinking.ON),
        ("Yes", Thinking.ON),
        ("high", Thinking.HIGH),
        ("null", None),
        ("~", None),
        ("''", None),
    ],
)
def test_the_words_that_yaml_reads_as_booleans_are_understood(tmp_path: Path, word: str, read: Thinking | None) -> None:
    path = write(tmp_path, "a.yaml", f"id: a\nmodel: offline/demo\nparams: {{thinking: {word}}}\n")
    assert load_profile_file(path).params.thinking is read


def test_mistakes_of_a_file_are_named_with_it(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", "id: a\nmodel: demo\nlimits: {max_tool_calls: 0}\n")
    assert list(problems_of(path)) == ["model", "limits.max_tool_calls"]
    assert problems_of(write(tmp_path, "b.yaml", "a: [\n"))[""].startswith("line 2")
    assert problems_of(write(tmp_path, "c.yaml", "id: a\nid: b\n")) == {
        "id": "line 2: the key is given again, after line 1"
    }
    assert problems_of(write(tmp_path, "d.json", '{"id": "a", "id": "b"}'))["id"] == "the key is given more than once"
    assert problems_of(write(tmp_path, "e.json", '{"id": '))[""].startswith("is not JSON: ")
    assert problems_of(write(tmp_path, "f.yaml", "")) == {"": "must be a mapping, got null"}
    assert problems_of(write(tmp_path, "g.yaml", "id: 2030-01-01\nmodel: a/b\n"))["id"].endswith("put it in quotes")
    assert list(problems_of(write(tmp_path, "h.yaml", "&a\nid: *a\n"))) == ["id.id.id.id.id.id.id.id"]


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "missing.yaml") == {"": "cannot be read: No such file or directory"}
    assert problems_of(tmp_path) == {"": "cannot be read: Is a directory"}
    broken = tmp_path / "broken.yaml"
    broken.write_bytes(b"id: a\nmodel: \xff\n")
    assert problems_of(broken) == {"": "line 2: is not UTF-8"}
    broken.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    assert "must have at most" in problems_of(broken)[""]


def test_settings_are_read_from_a_file(tmp_path: Path) -> None:
    text = f"channels:\n  - {{id: w, url: 'https://x.example/', secret: {SECRET}}}\n"
    assert load_settings_file(write(tmp_path, "s.yaml", text)).channels[0].secrets == (SECRET,)
    assert load_settings_file(write(tmp_path, "empty.yaml", "# nothing yet\n")).channels == ()
    with pytest.raises(
        InvalidConfiguration, match=r"s2\.yaml is not valid:\n  channel: unknown key; did you mean channels"
    ):
        load_settings_file(write(tmp_path, "s2.yaml", "channel: []\n"))


def test_a_folder_is_read_by_file_name(tmp_path: Path) -> None:
    write(tmp_path, "b.yml", "id: second\nmodel: offline/demo\n")
    write(tmp_path, "a.yaml", "id: first\nmodel: offline/demo\n")
    write(tmp_path, "c.json", '{"id": "third", "model": "offline/demo"}')
    write(tmp_path, "README.md", "not a profile")
    write(tmp_path, ".hidden.yaml", "not: a profile")
    (tmp_path / "folder.yaml").mkdir()
    assert [profile.id for profile in load_profile_folder(tmp_path)] == ["first", "second", "third"]


def test_the_mistakes_of_all_files_are_listed(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "id: one\nmodel: demo\n")
    write(tmp_path, "b.yaml", "id: two\nmodel: offline/demo\n")
    write(tmp_path, "c.yaml", "id: two\nmodel: offline/demo\n")
    write(tmp_path, "d.yaml", "a: [\n")
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile_folder(tmp_path)
    assert caught.value.where == str(tmp_path)
    assert [path for path, _ in caught.value.problems] == ["a.yaml: model", "c.yaml: id", "d.yaml"]
    assert caught.value.problems[1][1] == "is the id of b.yaml already"


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        load_profile_folder(tmp_path / "missing")
    assert load_profile_folder(tmp_path) == ()
