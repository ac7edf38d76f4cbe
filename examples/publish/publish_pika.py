"""Publish one turn job with plain pika: python publish_pika.py SESSION AGENT TEXT [ID]"""

import json
import os
import sys
import uuid

import pika

session, agent, text, *given = sys.argv[1:]
id_ = given[0] if given else str(uuid.uuid4())  # made before the first try: whoever repeats the job says the same one
job = {"id": id_, "session": session, "agent": agent, "text": text}

connection = pika.BlockingConnection(pika.URLParameters(os.environ["INSIKA_AMQP_URL"]))
channel = connection.channel()
channel.confirm_delivery()  # from here on, basic_publish returns when RabbitMQ has the message, or raises
channel.basic_publish(
    exchange="",
    routing_key="insika.turns",
    body=json.dumps(job).encode(),
    properties=pika.BasicProperties(message_id=id_, content_type="application/json", delivery_mode=2),  # 2: persistent
    mandatory=True,  # raises UnroutableError where the queue is not there
)
connection.close()
print(f"published {id_}")
