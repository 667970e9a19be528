"""Messages on a stream: what is written is read, and what is not a message is told apart."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rvm_dap.wire import BadMessage, BrokenStream, read_message, write_message
from sizes import examples, wide

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@wide
@examples(100)
@given(st.lists(st.dictionaries(st.text(), values, max_size=4), max_size=4))
def test_what_is_written_is_read(messages: list[dict[str, Any]]) -> None:
    stream = io.BytesIO()
    for message in messages:
        write_message(stream, message)
    stream.seek(0)
    assert [read_message(stream) for _ in messages] == messages
    assert read_message(stream) is None


def test_the_length_is_in_bytes() -> None:
    stream = io.BytesIO()
    write_message(stream, {"a": "é→"})
    assert stream.getvalue() == 'Content-Length: 13\r\n\r\n{"a":"é→"}'.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"POST / HTTP/1.1\r\n\r\n",
        b"Content-Type: text\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"A: 1\r\n" * 30,
        b"x" * 100_000,
        b"Content-Le",
    ],
)
def test_a_header_that_is_none(data: bytes) -> None:
    with pytest.raises(BrokenStream):
        read_message(io.BytesIO(data))


@pytest.mark.parametrize("content", [b"{", b"[1]", b"3", b"\xff\xfe", b"[" * 200_000])
def test_a_message_that_is_none_leaves_the_stream_at_the_next(content: bytes) -> None:
    stream = io.BytesIO(
        b"Content-Length: %d\r\n\r\n%sContent-Length: 2\r\n\r\n{}" % (len(content), content)
    )
    with pytest.raises(BadMessage):
        read_message(stream)
    assert read_message(stream) == {}


@pytest.mark.parametrize("data", [b"", b"Content-Length: 5\r\n", b"Content-Length: 5\r\n\r\n{}"])
def test_a_stream_that_breaks_off_is_at_its_end(data: bytes) -> None:
    assert read_message(io.BytesIO(data)) is None


def test_other_headers_and_cases_are_read_over() -> None:
    data = b"content-type: x\r\nCONTENT-LENGTH: 7\r\n\r\n" + b'{"a":1}'
    assert read_message(io.BytesIO(data)) == {"a": 1}
