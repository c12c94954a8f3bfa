"""Terms that ask a model: a local server stands in for the remote one."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from assembly.named import reward_term
from envs.session import Session
from rewards.deadline import MOST_HANGING, called
from rewards.judged import judged
from rewards.mix import Mix, Weighted
from runtime.errors import RewardFault
from runtime.llm.replies import OFF, VARIABLE
from runtime.records import Rewarded, billed
from runtime.terms import term
from runtime.types import HAND_OVER, RewardTerm, View
from tests.envs.toys import call, opened

RUBRIC = "1 for a patient who is treated for what ails him, else 0."


@dataclass
class Provider:
    """Answers as it is told to, and remembers what it was asked."""

    says: str = '{"why": "well done", "score": 0.75}'
    status: int = 200
    asked: list[dict] = field(default_factory=list)
    url: str = ""
    silent: threading.Event | None = None


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            if made.silent is not None:
                made.silent.wait(10)
                return
            message = {"role": "assistant", "content": made.says}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {"id": "x", "object": "chat.completion", "created": 0, "model": "judge", "choices": [choice]}
            used = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
            body = json.dumps({**answer, "usage": used}).encode()
            self.send_response(made.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield made
    finally:
        if made.silent is not None:
            made.silent.set()
        server.shutdown()
        thread.join()
        server.server_close()


def judge(
    provider: Provider, cache: Path, timeout_s: float = 5.0, shows_truth: bool = False, **endpoint: float
) -> RewardTerm:
    where = {"base_url": provider.url, "timeout_s": timeout_s, **endpoint}
    return judged(RUBRIC, "judge", endpoint=where, cache=str(cache), shows_truth=shows_truth)


def played(against: str = "flu") -> Session:
    session = opened(ill="flu")
    session.act("nurse", call(HAND_OVER))
    session.act("doctor", call("treat", against=against))
    return session


def paid(found: RewardTerm, session: Session) -> Rewarded:
    last = max(i for i, r in enumerate(session.records) if r.kind == "observed")
    (record,) = Mix([Weighted(found)])(session, last).records
    return record


def test_a_model_judges_the_whole_episode(provider: Provider, tmp_path: Path) -> None:
    """It is shown rubric, case and what happened, and nothing of the hidden truth; its score is the pay."""
    assert paid(judge(provider, tmp_path), played()).value == 0.75
    (question,) = provider.asked
    assert RUBRIC in question["messages"][0]["content"]
    told = json.loads(question["messages"][1]["content"])
    assert {"agent": "doctor", "calls": "treat", "with": {"against": "flu"}} in told["happened"]
    assert "right answer" not in told


def test_the_truth_is_shown_where_it_is_asked_for(provider: Provider, tmp_path: Path) -> None:
    """A judge that compares is declared to read the truth."""
    found = judge(provider, tmp_path, shows_truth=True)
    assert "truth" in found.reads
    assert paid(found, played()).value == 0.75
    told = json.loads(provider.asked[0]["messages"][1]["content"])
    assert told["right answer"] == dict(played().scenario.truth)


def test_nothing_is_judged_twice(provider: Provider, tmp_path: Path) -> None:
    """The same episode again, also in another process's memory, is read from disk; another one is asked for."""
    for _ in range(2):
        assert paid(judge(provider, tmp_path), played()).value == 0.75
    assert len(provider.asked) == 1
    paid(judge(provider, tmp_path), played("gout"))
    assert len(provider.asked) == 2
    for file in tmp_path.iterdir():
        file.write_text("{", encoding="utf-8")
    assert paid(judge(provider, tmp_path), played()).value == 0.75
    assert len(provider.asked) == 3


PRICED = {"usd_per_million_in": 1e6, "usd_per_million_out": 1e6}
"""A dollar a token."""


def test_what_a_judge_takes_is_billed_once(provider: Provider, tmp_path: Path) -> None:
    """Tokens and dollars stand with the pay; kept answers are told as such and billed to nobody; junk is billed too."""
    found = judge(provider, tmp_path, **PRICED)
    first, again = (paid(found, played()) for _ in range(2))
    assert [(r.tokens, r.cost_usd, r.cached) for r in (first, again)] == [(12, 12.0, False), (12, 12.0, True)]
    assert [billed(r) for r in (first, again)] == [(12.0, 12), (0.0, 0)]
    provider.says = "no"
    junk = paid(found, played("gout"))
    assert (junk.value, billed(junk)) == (None, (12.0, 12))


def test_a_judge_is_asked_again_where_that_is_wanted(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--no-cache`: nothing is read and nothing is kept, also where the file names a folder."""
    monkeypatch.setenv(VARIABLE, OFF)
    found = judge(provider, tmp_path)
    assert [paid(found, played()).cached for _ in range(2)] == [False, False]
    assert (len(provider.asked), list(tmp_path.iterdir())) == (2, [])


BAD = (
    "", "no", "{}", '{"score": null}', '{"score": "0.5"}', '{"score": true}', '{"score": 7}', "[1]", '{"score": NaN}',
    '{"score": -0.1}',
)  # fmt: skip


@pytest.mark.parametrize("says", BAD)
def test_an_answer_without_a_score_is_missing(says: str, provider: Provider, tmp_path: Path) -> None:
    """It is never zero, and it is not kept: the next episode asks again."""
    provider.says = says
    found = judge(provider, tmp_path)
    assert paid(found, played()).value is None
    assert "the judge judge gave" in paid(found, played()).missing
    assert len(provider.asked) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_provider_that_fails_is_asked_once(provider: Provider, tmp_path: Path) -> None:
    """Missing after one request, with the reason: nobody retries behind anybody's back."""
    provider.status = 503
    record = paid(judge(provider, tmp_path), played())
    assert record.value is None
    assert "InternalServerError" in record.missing
    assert len(provider.asked) == 1


def test_a_provider_that_is_silent_or_away_is_missing(provider: Provider, tmp_path: Path) -> None:
    """It takes no longer than its limit."""
    provider.silent = threading.Event()
    assert "APITimeoutError" in paid(judge(provider, tmp_path, 0.2), played()).missing
    away = judged(RUBRIC, "judge", endpoint={"base_url": "http://127.0.0.1:9/v1"}, cache=str(tmp_path))
    assert "APIConnectionError" in paid(away, played()).missing


def test_an_experiment_file_can_name_it(provider: Provider, tmp_path: Path) -> None:
    """``{use: rewards.judged:judged, args: {…}}`` in ``rewards.terms``."""
    args = {"rubric": RUBRIC, "model": "judge", "name": "manners", "endpoint": {"base_url": provider.url}}
    found = reward_term("rewards.judged:judged", {**args, "cache": str(tmp_path)}, {})
    assert paid(found, played()).term == "manners"
    assert paid(found, played()).value == 0.75


# -- time limits of any term


def test_a_term_that_hangs_is_missing_and_soon_not_asked() -> None:
    """Its time is up, the episode goes on; a few threads hang at most, and when they come back it is asked again."""
    free = threading.Event()

    @term(kind="cost", timeout_s=0.02)
    def hangs(view: View) -> float:
        free.wait(30)
        return -1.0

    session = played()
    for _ in range(MOST_HANGING):
        assert "took longer than 0.02 s" in paid(hangs, session).missing
    assert "still hang" in paid(hangs, session).missing
    free.set()


def test_a_term_in_time_says_what_it_says() -> None:
    """Values and faults come through as they are."""

    @term(kind="cost", timeout_s=10)
    def counts(view: View) -> float:
        return -float(len(view.history))

    @term(kind="cost", timeout_s=10)
    def refuses(view: View) -> float:
        raise RewardFault("nothing to judge")

    session = played()
    assert paid(counts, session).value == -float(len(session.records))
    assert "nothing to judge" in paid(refuses, session).missing
    with pytest.raises(RewardFault):
        called(refuses, None)
