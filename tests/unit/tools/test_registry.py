from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from insika.errors import InvalidConfiguration
from insika.tools import tool
from insika.tools.registry import ToolRegistry, load_tools

MODULE = """
from __future__ import annotations
from dataclasses import dataclass
from insika.tools import tool

@dataclass
class Book:
    title: str

@tool(group="shop")
def find(book: Book) -> str:
    return book.title
"""


@tool
def zebra(n: int) -> int:
    return n


@tool(group="animals")
def ant(n: int) -> int:
    return n


@tool(name="Ant")
def capital_ant(n: int) -> int:
    return n


@tool(name="ant")
def second_ant(n: int) -> int:
    return n


@pytest.fixture
def restored_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.mark.usefixtures("restored_imports")
def test_a_module_without_tools_is_a_mistake() -> None:
    with pytest.raises(InvalidConfiguration) as error:
        load_tools(["json", "colorsys"])
    assert error.value.problems == [
        ("json", "has no @tool and no @policy functions"),
        ("colorsys", "has no @tool and no @policy functions"),
    ]


def test_names_are_exact() -> None:
    registry = ToolRegistry([ant, capital_ant, zebra])
    assert registry.names == ("Ant", "ant", "zebra")
    assert registry.get("ant") is ant
    assert registry.get("Ant") is capital_ant
    assert registry.get("ANT") is None
    assert registry.get("ant ") is None


def test_a_clash_names_both_places() -> None:
    with pytest.raises(InvalidConfiguration) as clash:
        ToolRegistry([ant, second_ant])
    assert "test_registry.ant," in str(clash.value)
    assert "test_registry.second_ant," in str(clash.value)
    assert clash.value.field == "ant"


def test_the_same_tool_twice_is_no_clash() -> None:
    assert ToolRegistry([ant, ant]).names == ("ant",)


def test_specs_come_in_one_order_whatever_was_asked() -> None:
    one, other = ToolRegistry([ant, zebra, capital_ant]), ToolRegistry([zebra, capital_ant, ant])
    assert one.specs(["zebra", "ant"]) == other.specs(["ant", "zebra"])
    assert [spec.name for spec in one.specs(["zebra", "ant", "zebra"])] == ["ant", "zebra"]
    assert one.specs([]) == ()


def test_a_spec_of_an_unknown_tool_is_an_error() -> None:
    with pytest.raises(LookupError, match="no tool cow; there are: ant"):
        ToolRegistry([ant]).specs(["cow"])


def test_groups_come_with_names() -> None:
    assert ToolRegistry([zebra, ant]).grouped == (("ant", "animals"), ("zebra", None))


@pytest.mark.usefixtures("restored_imports")
def test_tools_are_loaded_from_a_module_in_the_directory(tmp_path: Path) -> None:
    (tmp_path / "shop_tools_a.py").write_text(MODULE)
    registry = load_tools("shop_tools_a", tmp_path)
    assert registry.names == ("find",)


@pytest.mark.usefixtures("restored_imports")
def test_tools_are_loaded_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "my-tools.py").write_text(MODULE)
    registry = load_tools("my-tools.py", tmp_path)
    found = registry.get("find")
    assert found is not None
    assert found.bind({"book": {"title": "x"}})["book"].title == "x"


@pytest.mark.usefixtures("restored_imports")
def test_several_names_blanks_and_repeats_are_understood(tmp_path: Path) -> None:
    (tmp_path / "shop_tools_b.py").write_text(MODULE)
    (tmp_path / "shop_tools_c.py").write_text(MODULE.replace("find", "seek"))
    registry = load_tools(" shop_tools_b, ./shop_tools_c.py,, shop_tools_b,shop_tools_c.py", tmp_path)
    assert registry.names == ("find", "seek")


def test_no_names_give_no_tools() -> None:
    assert load_tools("").names == ()


@pytest.mark.usefixtures("restored_imports")
def test_every_module_that_fails_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "broken_a.py").write_text("import no_such_thing_at_all")
    (tmp_path / "broken_b.py").write_text("raise SystemExit(3)")
    with pytest.raises(InvalidConfiguration) as failure:
        load_tools(["broken_a", "broken_b.py", "not_there_either", "gone.py"], tmp_path)
    problems = dict(failure.value.problems)
    assert list(problems) == ["broken_a", "broken_b.py", "not_there_either", "gone.py"]
    assert "no_such_thing_at_all" in problems["broken_a"]
    assert "SystemExit: 3" in problems["broken_b.py"]
    assert "not_there_either" in problems["not_there_either"]
    assert "gone.py" in problems["gone.py"]


@pytest.mark.usefixtures("restored_imports")
def test_a_badly_made_tool_says_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "bad_tool.py").write_text(MODULE.replace("book: Book", "book"))
    with pytest.raises(InvalidConfiguration, match=r"bad_tool\.py.*parameter book has no type"):
        load_tools("bad_tool.py", tmp_path)


@pytest.mark.usefixtures("restored_imports")
def test_a_file_that_failed_can_be_loaded_once_it_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "mended.py"
    file.write_text("1 / 0")
    with pytest.raises(InvalidConfiguration, match="ZeroDivisionError"):
        load_tools("mended.py", tmp_path)
    file.write_text(MODULE + "# mended\n")
    assert load_tools("mended.py", tmp_path).names == ("find",)
