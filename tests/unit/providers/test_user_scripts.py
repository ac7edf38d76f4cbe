from __future__ import annotations

from pathlib import Path

import pytest

from insika.errors import InvalidConfiguration
from insika.messages import user
from insika.ports import Finished, ModelRequest
from insika.providers.offline import OfflineProvider
from insika.providers.user_scripts import load_scripts

MODULE = """
from insika import testing
from insika.testing import Say, Script

shop = Script([Say("We open at nine.")])
also_shop = "not a script"
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "shop_scripts.py"
    path.write_text(MODULE)
    return path


async def test_a_script_in_a_module_is_a_model(module: Path, tmp_path: Path) -> None:
    scripts = load_scripts(["shop_scripts.py"], directory=tmp_path)
    assert list(scripts) == ["shop"]
    provider = OfflineProvider(scripts)
    events = [event async for event in provider.stream(ModelRequest("shop", "", (user("when?"),), ()))]
    assert isinstance(events[-1], Finished)
    assert events[-1].message.content == "We open at nine."


def test_a_script_may_not_take_the_sample_s_name(module: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"shop_scripts\.py\.shop: there is another script"):
        load_scripts(["shop_scripts.py"], taken=("shop",), directory=tmp_path)


def test_two_scripts_of_one_name_clash_and_one_script_named_twice_does_not(module: Path, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(MODULE)
    with pytest.raises(InvalidConfiguration, match="another script called 'shop'"):
        load_scripts(["shop_scripts.py,more.py"], directory=tmp_path)
    assert list(load_scripts(["shop_scripts.py", "shop_scripts.py"], directory=tmp_path)) == ["shop"]


def test_without_modules_there_are_none() -> None:
    assert load_scripts(()) == {}
