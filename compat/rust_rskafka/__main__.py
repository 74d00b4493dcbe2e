"""The driver of rskafka; ``compat.scenarios.python.driver`` says how it is called."""

from compat.rust_rskafka.client import command
from compat.scenarios.python.driver import main
from compat.scenarios.remote.client import RemoteClient
from compat.scenarios.remote.process import RemoteProcess

if __name__ == "__main__":
    main(RemoteClient(RemoteProcess(command())))
