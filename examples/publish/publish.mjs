// Publish one turn job with amqplib: node publish.mjs SESSION AGENT TEXT [ID]
import { randomUUID } from "node:crypto";
import amqp from "amqplib";

const [session, agent, text, id = randomUUID()] = process.argv.slice(2); // who repeats the job says the same id
const job = { id, session, agent, text };

const connection = await amqp.connect(process.env.INSIKA_AMQP_URL);
const channel = await connection.createConfirmChannel();
let returned = false;
channel.on("return", () => (returned = true)); // comes before the confirmation, where the queue is not there
await new Promise((resolve, reject) => {
  const body = Buffer.from(JSON.stringify(job));
  const options = { messageId: id, contentType: "application/json", persistent: true, mandatory: true };
  channel.publish("", "insika.turns", body, options, (error) => (error ? reject(error) : resolve()));
});
await connection.close();
if (returned) throw new Error("RabbitMQ has no queue insika.turns: start `insika ingress`, which declares it");
console.log(`published ${id}`);
