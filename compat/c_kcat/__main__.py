"""The driver of kcat; ``compat.scenarios.python.driver`` says how it is called."""

from compat.c_kcat.catalogue import kcat_catalogue
from compat.c_kcat.command import installed_version
from compat.c_kcat.plays import PLAYS, Kcat
from compat.scenarios.python.driver import Repertoire, main

if __name__ == "__main__":
    main(Kcat(installed_version()), None, Repertoire(kcat_catalogue().scenarios, PLAYS))
