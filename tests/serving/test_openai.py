"""Roles that a language model plays, asked by OpenAI's own client, unmodified, over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.serving.house import House, house
from tests.serving.openai_team import SHOP, shop_version

HELLO: Any = [{"role": "user", "content": "hello, who are you?"}]
WEIGH: Any = {
    "type": "function",
    "function": {
        "name": "weigh",
        "description": "Weigh the goods.",
        "parameters": {"type": "object", "properties": {"kg": {"enum": [1, 2]}}, "required": ["kg"]},
    },
}
TOKENS = {name: f"{name}-token-0123456789" for name in ("admin", "ada", "bob")}


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two versions of the shop that decide differently."""
    made = [tmp_path_factory.mktemp(name) / "version" for name in ("first", "second")]
    for seed, directory in enumerate(made):
        shop_version(directory, seed)
    return made[0], made[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, versions: tuple[Path, Path]) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("shop"), SHOP, versions, TOKENS) as running:
        yield running


def client_at(server: House, name: str = "ada") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=TOKENS[name], max_retries=0, timeout=60)


@pytest.fixture
def client(server: House) -> Iterator[openai.OpenAI]:
    with client_at(server) as made:
        yield made


def offered(*names: str) -> Any:
    return [{"type": "function", "function": {"name": name}} for name in names]


def test_the_models_are_the_roles_of_each_version(client: openai.OpenAI) -> None:
    """With a version, or by itself: then a new session's."""
    listed = {m.id: m for m in client.models.list()}
    roles = [f"{SHOP}/{role}" for role in ("buyer", "clerk")]
    assert set(listed) == {r + v for r in roles for v in ("", "@v1", "@v2")}
    shown = client.models.retrieve(f"{SHOP}/buyer@v2")
    assert (shown.owned_by, shown.created > 0) == (SHOP, True)
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve(f"{SHOP}/cashier")
    assert error.value.code == "model_not_found"


def test_a_role_decides_as_at_its_export(client: openai.OpenAI, versions: tuple[Path, Path]) -> None:
    """Asked with its own brief and tools, for whatever it saw then: the same calls, in either version, whole or not."""
    for alias, export in zip(("v1", "v2"), versions, strict=True):
        about = json.loads((export / "team.json").read_text())
        for each in json.loads((export / "golden.json").read_text())[:8]:
            features = json.loads((export / "policies" / f"{each['agent']}.json").read_text())["features"]
            calls = [json.loads(c) for c in features["calls"]]
            tools = offered(*dict.fromkeys(c["tool"] for c, ok in zip(calls, each["mask"], strict=True) if ok))
            messages: Any = [
                {"role": "system", "content": about["roles"][each["agent"]]},
                {"role": "user", "content": each["text"]},
            ]
            said = client.chat.completions.create(
                model=f"{SHOP}/{each['agent']}@{alias}", messages=messages, tools=tools
            ).choices[0]
            assert said.finish_reason == "tool_calls"
            (call,) = list(said.message.tool_calls or [])
            assert call.type == "function"
            assert {"tool": call.function.name, "args": json.loads(call.function.arguments)} == {
                "args": {},
                **calls[each["action"]],
            }


def test_a_tools_answer_is_read_as_in_training(client: openai.OpenAI) -> None:
    """As the line that the role sees: the same tokens as in one message."""
    line = '"the list says tea"'
    call = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talk: Any = [
        {"role": "user", "content": 'case {"case": 1}'},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": line},
    ]
    one: Any = [{"role": "user", "content": f'case {{"case": 1}}\nlook {line}'}]
    said = [
        client.chat.completions.create(model=f"{SHOP}/buyer@v1", messages=m, tools=offered("look", "hand_over"))
        for m in (talk, one)
    ]
    assert said[0].usage == said[1].usage
    calls = [c.function for s in said for c in s.choices[0].message.tool_calls or () if c.type == "function"]
    assert (len(calls), calls[0]) == (2, calls[1])
    with pytest.raises(openai.BadRequestError, match="no call 'other'"):
        client.chat.completions.create(
            model=f"{SHOP}/buyer@v1", messages=[*talk[:2], {**talk[2], "tool_call_id": "other"}]
        )


def test_a_stream_says_what_the_whole_answer_says(client: openai.OpenAI) -> None:
    """Free text, drawn with a seed; its usage at the end, where it is asked for."""
    asked: Any = {"model": f"{SHOP}/clerk@v1", "messages": HELLO, "seed": 7, "temperature": 1.0, "max_tokens": 12}
    whole = client.chat.completions.create(**asked)
    assert whole.model == f"{SHOP}/clerk@v1"
    assert whole.choices[0].finish_reason == "length"
    parts = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
    assert text == whole.choices[0].message.content
    assert parts[-1].usage == whole.usage
    assert whole.usage is not None
    assert (whole.usage.completion_tokens, whole.usage.total_tokens) == (12, 12 + whole.usage.prompt_tokens)
    assert [p.choices[0].finish_reason for p in parts if p.choices][-1] == "length"
    assert client.chat.completions.create(**{**asked, "seed": 8}).choices[0].message.content != text
    stop = text[4:7]
    cut = client.chat.completions.create(**asked, stop=[stop]).choices[0]
    assert (cut.finish_reason, cut.message.content or "") == ("stop", text[: text.index(stop)])


def test_a_call_comes_in_a_stream(client: openai.OpenAI) -> None:
    """Of the role's own tools, as one piece."""
    parts = list(
        client.chat.completions.create(
            model=f"{SHOP}/clerk", messages=HELLO, tools=offered("sell"), stream=True, tool_choice="required"
        )
    )
    (calls,) = [p.choices[0].delta.tool_calls for p in parts if p.choices[0].delta.tool_calls]
    assert calls[0].function is not None
    assert json.loads(calls[0].function.arguments or "")["ware"] in ("tea", "salt")
    assert parts[-1].choices[0].finish_reason == "tool_calls"


def test_other_tools_are_called_as_their_schema_says(client: openai.OpenAI) -> None:
    """Where a call is demanded; in either mode."""
    named: Any = {"type": "function", "function": {"name": "weigh"}}
    for role in ("buyer", "clerk"):
        for choice in ("required", named):
            said = client.chat.completions.create(
                model=f"{SHOP}/{role}@v1", messages=HELLO, tools=[WEIGH], tool_choice=choice, max_tokens=60
            ).choices[0]
            (call,) = list(said.message.tool_calls or [])
            assert call.type == "function"
            assert (call.function.name, json.loads(call.function.arguments)["kg"] in (1, 2)) == ("weigh", True)
    cut = client.chat.completions.create(
        model=f"{SHOP}/buyer@v1", messages=HELLO, tools=[WEIGH], tool_choice="required", max_tokens=2
    ).choices[0]
    assert (cut.finish_reason, cut.message.tool_calls) == ("length", None)


def test_errors_have_the_shape_that_clients_know(client: openai.OpenAI, server: House) -> None:
    """Each its status, type and code, with the key that is wrong."""
    model: Any = {"model": f"{SHOP}/clerk"}
    wrong: list[tuple[type[openai.APIStatusError], dict[str, Any], str, str | None]] = [
        (openai.NotFoundError, {"model": "gpt-5"}, "model_not_found", "model"),
        (openai.NotFoundError, {"model": f"{SHOP}/clerk@v9"}, "model_not_found", "model"),
        (openai.BadRequestError, {"n": 2}, "invalid_request", "n"),
        (openai.BadRequestError, {"temperature": -1}, "invalid_request", "temperature"),
        (openai.BadRequestError, {"logit_bias": {"5": 1}}, "invalid_request", "logit_bias"),
        (openai.BadRequestError, {"messages": []}, "invalid_request", "messages"),
        (openai.BadRequestError, {"max_tokens": 5000}, "context_length_exceeded", "messages"),
        (openai.BadRequestError, {"tool_choice": "required"}, "bad_tool_choice", "tool_choice"),
        (
            openai.BadRequestError,
            {"messages": [{"role": "user", "content": "hello " * 3000}]},
            "context_length_exceeded",
            "messages",
        ),
    ]
    for kind, keys, code, param in wrong:
        for stream in (False, True):
            with pytest.raises(kind) as error:
                client.chat.completions.create(**{**model, "messages": HELLO, "stream": stream, **keys})
            assert (error.value.code, error.value.param) == (code, param)
            assert error.value.type == "invalid_request_error"
    with client_at(server) as stranger:
        stranger.api_key = "wrong-token-0123456789"
        with pytest.raises(openai.AuthenticationError) as refused:
            stranger.chat.completions.create(**model, messages=HELLO)
        assert (refused.value.code, refused.value.type) == ("wrong_token", "authentication_error")


def share(server: House, ratio: float) -> None:
    server.versions.canary(SHOP, "v2", ratio, by="test", why="")
    server.look()


def test_chats_of_a_session_stay_with_its_version(server: House, client: openai.OpenAI) -> None:
    """Those of one name; others are shared out. The session is its caller's, and ends as any other."""

    def version(session: str = "", who: openai.OpenAI = client) -> str:
        headers = {"x-session-id": session} if session else {}
        raw = who.chat.completions.with_raw_response.create(
            model=f"{SHOP}/buyer", messages=HELLO, tools=offered("look"), extra_headers=headers
        )
        assert raw.parse().model == f"{SHOP}/buyer@{raw.headers['x-agent-version']}"
        return raw.headers["x-agent-version"]

    share(server, 0.5)
    names = [f"talk-{i}" for i in range(12)]
    try:
        first = {n: version(n) for n in names}
        assert set(first.values()) == {"v1", "v2"}
        share(server, 0.0)
        assert {n: version(n) for n in names} == first
    finally:
        share(server, 0.0)
    on_v2 = next(n for n, v in first.items() if v == "v2")
    with pytest.raises(openai.ConflictError) as error:
        client.chat.completions.create(model=f"{SHOP}/buyer@v1", messages=HELLO, extra_headers={"x-session-id": on_v2})
    assert error.value.code == "other_version"
    with client_at(server, "bob") as bob:
        before = server.versions.open_sessions(SHOP)
        assert version(on_v2, bob) == "v1", "his talk of that name is another one"
        assert server.versions.open_sessions(SHOP)["v1"] == before["v1"] + 1
        version("", bob)
        assert server.versions.open_sessions(SHOP)["v1"] == before["v1"] + 1, "a chat by itself leaves nothing"
