"""Receive Insika's deliveries with aiohttp: python receive_aiohttp.py PORT, the channel's secret in CHANNEL_SECRET."""

import json
import os
import sqlite3
import sys

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["CHANNEL_SECRET"])
kept = sqlite3.connect("deliveries.db", isolation_level=None)  # each statement is on the disk when it returns
kept.execute("CREATE TABLE IF NOT EXISTS deliveries (id TEXT PRIMARY KEY, body BLOB NOT NULL)")


async def receive(request: web.Request) -> web.Response:
    body = await request.read()
    try:
        webhook.verify(body, dict(request.headers), json_parse=False)  # also refuses what is older than five minutes
    except (WebhookVerificationError, ValueError):
        return web.Response(status=401)
    if kept.execute("INSERT OR IGNORE INTO deliveries VALUES (?, ?)", (request.headers["webhook-id"], body)).rowcount:
        delivery = json.loads(body)
        print(f"{delivery['type']} for {delivery.get('recipient')}: {delivery.get('content')}", flush=True)
    return web.Response(status=204)  # also to a repeat: the first one is kept


app = web.Application(client_max_size=16 * 1024 * 1024)
app.router.add_post("/{path:.*}", receive)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
