"""One sentence per setting, for DescribeConfigs with documentation.  Loaded when somebody asks for it."""

from broker.config.definitions import Scope


def documentation(scope: Scope, name: str) -> str:
    return ""
