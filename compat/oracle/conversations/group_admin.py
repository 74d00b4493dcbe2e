"""ListGroups, DescribeGroups and DeleteGroups: what is told of groups, and their end."""

from compat.oracle.conversation import conversation
from compat.oracle.conversations.groups import SECOND, form, join, join_alone, leave, start_joining
from compat.oracle.conversations.offsets import commit
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.list_groups import ListGroupsRequest


@conversation(ApiKey.LIST_GROUPS)
def listing(talk: Talk) -> None:
    topic = talk.topic("t")
    form(talk, talk.name("stable"))
    talk.ask("commit", commit(talk.name("empty"), (topic, 0, 1)))
    join_alone(talk, "join and wait", join(talk.name("completing"), kind="connect"), by=SECOND)
    talk.settle_groups()
    talk.ask("all", ListGroupsRequest())
    talk.ask("stable ones", ListGroupsRequest(states_filter=["Stable"]))
    talk.ask("in any case", ListGroupsRequest(states_filter=["eMPTY", "completingrebalance"]))
    talk.ask("in an unknown state", ListGroupsRequest(states_filter=["Unknown", "no such state"]))
    talk.ask("of the classic type", ListGroupsRequest(types_filter=["CLASSIC"]))
    talk.ask("of another type", ListGroupsRequest(types_filter=["consumer"]))
    talk.ask("of an unknown type", ListGroupsRequest(types_filter=["no such type"]))
    talk.ask("of a type, in a state", ListGroupsRequest(types_filter=["classic"], states_filter=["Empty"]))


@conversation(ApiKey.DESCRIBE_GROUPS)
def describing(talk: Talk) -> None:
    topic = talk.topic("t")
    form(talk, talk.name("stable"))
    talk.ask("commit", commit(talk.name("empty"), (topic, 0, 1)))
    join_alone(talk, "join and wait", join(talk.name("completing"), kind="connect"), by=SECOND)
    talk.settle_groups()
    talk.ask("a stable one", DescribeGroupsRequest(groups=[talk.name("stable")]))
    talk.ask("an empty one", DescribeGroupsRequest(groups=[talk.name("empty")]))
    talk.ask("one without assignment", DescribeGroupsRequest(groups=[talk.name("completing")]))
    start_joining(talk, "another joins", join(talk.name("stable"), protocols=("range", "x")), by="third")
    talk.until_group_is(talk.name("stable"), "PreparingRebalance")
    talk.ask("one that rebalances", DescribeGroupsRequest(groups=[talk.name("stable")]))
    talk.ask("an unknown one", DescribeGroupsRequest(groups=[talk.name("unknown")]))
    several = [talk.name("empty"), talk.name("unknown"), talk.name("completing"), talk.name("empty")]
    talk.ask("several", DescribeGroupsRequest(groups=several))
    talk.ask("none", DescribeGroupsRequest())
    request = DescribeGroupsRequest(groups=several[:2], include_authorized_operations=True)
    talk.ask("with operations", request)


@conversation(ApiKey.DELETE_GROUPS)
def deleting(talk: Talk) -> None:
    topic = talk.topic("t")
    stable = talk.name("stable")
    member = form(talk, stable).member_id
    for name in ("a", "b", "c"):
        talk.ask(f"commit of {name}", commit(talk.name(name), (topic, 0, 1)))
    talk.ask("an empty one", DeleteGroupsRequest(groups_names=[talk.name("a")]))
    talk.ask("it is gone", DeleteGroupsRequest(groups_names=[talk.name("a")]))
    talk.ask("it is described", DescribeGroupsRequest(groups=[talk.name("a")]))
    talk.ask("one with a member", DeleteGroupsRequest(groups_names=[stable]))
    talk.ask("an unknown one", DeleteGroupsRequest(groups_names=[talk.name("unknown")]))
    several = [talk.name("b"), stable, talk.name("unknown"), talk.name("c")]
    talk.ask("several", DeleteGroupsRequest(groups_names=several))
    talk.ask("the same twice", DeleteGroupsRequest(groups_names=[stable, stable]))
    talk.ask("none", DeleteGroupsRequest())
    talk.ask("the member leaves", leave(talk, stable, member))
    talk.ask("one without member now", DeleteGroupsRequest(groups_names=[stable]))
