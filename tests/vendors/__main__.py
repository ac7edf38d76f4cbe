"""A fake vendor in a process of its own, for tests with several processes.

    python -m tests.vendors anthropic --script insika.providers.demo_script:demo_script
    python -m tests.vendors openai --dialect deepseek --script my_scripts:SCRIPT --port 8080

Prints one line of JSON, `{"base_url": ..., "key": ..., "control": ...}`, when it takes requests, and serves until
SIGTERM or SIGINT. Under `control`: `POST /troubles` (a list of `troubles.to_json`), `POST /gate`, `GET /requests`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import signal

from insika.providers.script import Script
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, Vendor, serving


def script_at(place: str) -> Script:
    """`module:attribute`: a Script, or a function without arguments that makes one."""
    module, _, attribute = place.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    script = found() if callable(found) else found
    if not isinstance(script, Script):
        raise SystemExit(f"{place} is no Script")
    return script


def vendor_of(arguments: argparse.Namespace) -> Vendor:
    script = script_at(arguments.script)
    if arguments.vendor == "anthropic":
        return AnthropicVendor(script, cache_minimum=arguments.cache_minimum)
    return OpenAIVendor(script, Dialect(arguments.dialect), cache_minimum=arguments.cache_minimum)


async def serve(vendor: Vendor, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(vendor, port):
        control = f"http://127.0.0.1:{vendor.port}/_fake"
        line = {"base_url": vendor.base_url, "key": vendor.key, "control": control}
        print(json.dumps(line), flush=True)
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.vendors")
    parser.add_argument("vendor", choices=("anthropic", "openai"))
    parser.add_argument("--script", required=True, help="module:attribute")
    parser.add_argument("--dialect", choices=[one.value for one in Dialect], default="openai")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--cache-minimum", type=int, default=None, help="the smallest prompt that is cached, in tokens")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(vendor_of(arguments), arguments.port))


if __name__ == "__main__":
    main()
