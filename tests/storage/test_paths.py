from storage import paths


def test_segment_files_are_named_after_twenty_digits() -> None:
    assert paths.offset_name(42) == "00000000000000000042"
    assert paths.parse_offset_name("00000000000000000042.log", ".log") == 42
    assert paths.parse_offset_name("00000000000000000042.index", ".log") is None
    assert paths.parse_offset_name("leader-epoch-checkpoint", ".log") is None
    assert paths.parse_offset_name("٣.log", ".log") is None
    assert paths.parse_offset_name("09223372036854775807.log", ".log") == (1 << 63) - 1
    for unusual in ("42.log", "000000000000000000042.log"):
        assert paths.parse_offset_name(unusual, ".log") is None, unusual
    for too_large in ("09223372036854775808.log", "99999999999999999999.log"):
        assert paths.parse_offset_name(too_large, ".log") is None, too_large


def test_a_replica_is_split_at_the_last_dash() -> None:
    assert paths.replica_name("a-b", 7) == "a-b-7"
    assert paths.parse_replica_name("a-b-7") == ("a-b", 7)
    for name in ("a", "-7", "a-", "a-x", "a--", "", "a-²"):
        assert paths.parse_replica_name(name) is None, name


def test_marked_names_stay_within_what_file_systems_allow() -> None:
    unique = "0123456789abcdef" * 2
    name = paths.marked_name("orders", 3, unique, paths.DELETE_MARK)
    assert name == f"orders-3.{unique}-delete"
    assert paths.parse_marked_name(name, paths.DELETE_MARK) == ("orders", 3)
    assert paths.parse_marked_name(name, paths.STRAY_MARK) is None
    long_name = paths.marked_name("x" * 249, 3, unique, paths.DELETE_MARK)
    assert len(long_name) == 255
    assert paths.parse_marked_name(long_name, paths.DELETE_MARK) is not None


def test_a_topic_may_be_called_like_a_mark() -> None:
    assert paths.parse_marked_name("to-delete", paths.DELETE_MARK) is None
    assert paths.parse_replica_name("orders-delete-0") == ("orders-delete", 0)
