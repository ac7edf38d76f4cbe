"""RabbitMQ, PostgreSQL and Redis of one's own, on free loopback ports, with data in a temporary folder.

    with PrivateServices.start(which=["rabbitmq"], rabbitmq_settings={"consumer_timeout": "5000"}) as services:
        services.rabbitmq.kill()
        services.rabbitmq.start()

Only the standard library is used, so that a clone without its virtual environment can start them, too.
"""

from __future__ import annotations

from .console import ConsoleError as ConsoleError
from .console import RabbitConsole as RabbitConsole
from .programs import MissingProgram as MissingProgram
from .server import ServerError as ServerError
from .together import PrivateServices as PrivateServices
from .together import records as records
