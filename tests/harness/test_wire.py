"""Messages over a stream: cut at any place, bounded, and never anything but JSON."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.world import wire

HEADS = st.dictionaries(st.text(max_size=8), st.none() | st.booleans() | st.integers() | st.text(max_size=20))


@given(messages=st.lists(st.tuples(HEADS, st.binary(max_size=200)), max_size=5), data=st.data())
def test_messages_come_whole_however_the_stream_is_cut(messages: list[tuple[dict, bytes]], data: st.DataObject) -> None:
    stream = b"".join(wire.pack(head, blob) for head, blob in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parser, came = wire.Parser(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        came += parser.feed(stream[start:end])
    assert [(message.head, message.blob) for message in came] == messages


@pytest.mark.parametrize(
    "data",
    [
        wire.PREFIX.pack(wire.MAX_HEAD + 1, 0),
        wire.PREFIX.pack(2, wire.MAX_BLOB + 1),
        wire.PREFIX.pack(2, 0) + b"[]",
        wire.PREFIX.pack(4, 0) + b"{\xff}}",
        wire.PREFIX.pack(200_000, 0) + b"[" * 200_000,
    ],
    ids=["large head", "large blob", "no object", "no text", "deep"],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.Parser().feed(data)


def test_a_sender_hears_that_its_message_is_too_large() -> None:
    with pytest.raises(wire.WireError, match="too large to send"):
        wire.pack({"text": "x" * wire.MAX_HEAD})


def test_blocking_receive_reads_what_send_sent_and_none_at_the_end() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.send(ours, {"a": 1}, b"blob")
        assert wire.receive(theirs) == wire.Message({"a": 1}, b"blob")
        ours.shutdown(socket.SHUT_WR)
        assert wire.receive(theirs) is None


def test_a_stream_cut_inside_a_message_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(wire.pack({"a": 1}, b"blob")[:-1])
        with pytest.raises(wire.WireError):
            wire.receive(theirs)


def test_a_parser_bounds_all_heads_together_and_each_blob() -> None:
    one = wire.pack({"text": "x" * 40})
    parser = wire.Parser(max_blob=3, max_heads=150)
    assert len(parser.feed(one * 2)) == 2
    with pytest.raises(wire.WireError, match="too much"):
        parser.feed(one)
    with pytest.raises(wire.WireError, match="announces"):
        wire.Parser(max_blob=3).feed(wire.pack({}, b"four"))
