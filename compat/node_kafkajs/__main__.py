"""The driver of kafkajs; ``compat.scenarios.python.driver`` says how it is called."""

from compat.node_driver.client import KAFKAJS
from compat.scenarios.python.driver import main
from compat.scenarios.remote.client import RemoteClient
from compat.scenarios.remote.process import RemoteProcess

if __name__ == "__main__":
    main(RemoteClient(RemoteProcess(KAFKAJS.command())))
