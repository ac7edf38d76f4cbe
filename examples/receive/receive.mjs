// Receive Insika's deliveries with Node: node receive.mjs PORT, the channel's secret in CHANNEL_SECRET
import { fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const webhook = new Webhook(process.env.CHANNEL_SECRET);
const kept = openSync("deliveries.jsonl", "a+"); // one JSON object a line
const seen = new Set(readFileSync(kept, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line).id));

async function receive(request) {
  let body = Buffer.alloc(0);
  for await (const chunk of request) {
    body = Buffer.concat([body, chunk]);
    if (body.length > 16 * 1024 * 1024) return 413;
  }
  webhook.verify(body, request.headers, { jsonParse: false }); // also refuses what is older than five minutes
  const id = request.headers["webhook-id"];
  if (!seen.has(id)) {
    const delivery = JSON.parse(body);
    writeSync(kept, `${JSON.stringify({ id, delivery })}\n`) && fsyncSync(kept); // on the disk before it is answered
    seen.add(id);
    console.log(`${delivery.type} for ${delivery.recipient}: ${delivery.content}`);
  }
  return 204; // also to a repeat: the first one is kept
}

createServer(async (request, response) => {
  const status = await receive(request).catch((error) => (error instanceof WebhookVerificationError ? 401 : 500));
  response.writeHead(status).end();
}).listen(Number(process.argv[2]), "127.0.0.1");
