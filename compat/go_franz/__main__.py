"""The driver of franz-go; ``compat.scenarios.python.driver`` says how it is called."""

from compat.go_driver.client import FRANZ
from compat.go_franz.client import FranzGo
from compat.scenarios.python.driver import main
from compat.scenarios.remote.process import RemoteProcess

if __name__ == "__main__":
    main(FranzGo(RemoteProcess(FRANZ.command())))
