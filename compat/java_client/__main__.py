"""The driver of the Java client; ``compat.scenarios.python.driver`` says how it is called."""

from compat.java_client.program import command
from compat.scenarios.python.driver import main
from compat.scenarios.remote.client import RemoteClient
from compat.scenarios.remote.process import RemoteProcess

if __name__ == "__main__":
    main(RemoteClient(RemoteProcess(command())))
