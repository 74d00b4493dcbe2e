"""The driver of the Java client: a version, then what all drivers take.

``compat.scenarios.python.driver`` says what that is.
"""

import sys

from compat.java_client.program import client_of, command
from compat.scenarios.python.driver import main
from compat.scenarios.remote.client import RemoteClient
from compat.scenarios.remote.process import RemoteProcess

if __name__ == "__main__":
    version, *arguments = sys.argv[1:]
    client = RemoteClient(RemoteProcess(command(version)))
    client.name = client_of(version)
    main(client, arguments)
