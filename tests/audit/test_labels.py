"""People's labels: a sheet goes out, comes back from a spreadsheet, and is compared with the pay."""

import csv
import io
from pathlib import Path

import pytest

from rewards.audit import audit
from rewards.audit.decisions import decisions
from rewards.audit.material import Material
from rewards.audit.sheet import Label, SheetError, matched, read_labels, write_sheet
from runtime.terms import term
from runtime.types import View
from tests.audit.tiny import cases, material, tiny


def rows(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"), newline="")))


def labelled(file: Path, subject: Material, say, *, delimiter: str = ",") -> Path:
    """The sheet as somebody filled it in, who judges by what followed."""
    pay = {d.id: d.pay for d in decisions(subject)}
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, ["decision", "agent", "saw", "did", "label"], delimiter=delimiter)
    writer.writeheader()
    for place, row in enumerate(rows(file)):
        writer.writerow({**row, "label": say(pay[row["decision"]], place)})
    filled = file.with_name("filled.csv")
    filled.write_bytes(out.getvalue().encode("utf-8-sig"))
    return filled


def verdict(subject: Material, filled: Path):
    subject.own = {"labels": read_labels(filled)}
    return audit(subject, ["human-agreement"])


def test_a_sheet_hides_the_pay_and_covers_all_of_it(tmp_path: Path) -> None:
    """100 decisions, well and badly paid ones alike; what they were paid stands nowhere."""
    subject = material()
    assert write_sheet(subject, tmp_path / "sheet.csv") == 100
    found = rows(tmp_path / "sheet.csv")
    assert list(found[0]) == ["decision", "agent", "saw", "did", "label"]
    assert {r["label"] for r in found} == {""}
    pay = {d.id: d.pay for d in decisions(subject)}
    paid = [pay[r["decision"]] for r in found]
    assert sum(p > 0 for p in paid) >= 30
    assert sum(p < 0 for p in paid) >= 30
    assert len({r["decision"] for r in found}) == 100


def test_a_cell_is_never_a_formula(tmp_path: Path) -> None:
    """What a case says cannot make a spreadsheet compute."""

    def shout(case):
        return {"label": '=HYPERLINK("http://x","y")'}

    subject = material(tiny(generate=cases(shout), roles=tuple(tiny().roles)))
    write_sheet(subject, tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in csv.reader(file) for cell in row)


AGREEING = {
    "numbers": lambda pay, place: f"{pay:.2f}",
    "words": lambda pay, place: "yes" if pay > 0 else "no",
    "a scale of five": lambda pay, place: str(1 + min(4, int((pay + 2) * 1.3))),
    "with gaps": lambda pay, place: "" if place % 3 == 0 else f"{pay:.2f}",
}


@pytest.mark.parametrize("how", AGREEING)
def test_labels_that_agree_pass(how: str, tmp_path: Path) -> None:
    """Whatever scale people use, and wherever they leave gaps."""
    subject = material()
    write_sheet(subject, tmp_path / "sheet.csv")
    report = verdict(subject, labelled(tmp_path / "sheet.csv", subject, AGREEING[how]))
    assert [f.severity for f in report.findings] == ["note"]
    numbers = report.findings[0].evidence.numbers
    assert numbers["low"] <= numbers["correlation"] <= numbers["high"]


def test_labels_that_disagree_stop_the_run_with_three_examples(tmp_path: Path) -> None:
    """Turned round, or by chance: an error, and the three most telling decisions side by side."""
    for say in (lambda pay, place: f"{-pay:.2f}".replace(".", ","), lambda pay, place: str(place * 7 % 10)):
        subject = material()
        write_sheet(subject, tmp_path / "sheet.csv")
        report = verdict(subject, labelled(tmp_path / "sheet.csv", subject, say, delimiter=";"))
        assert [f.severity for f in report.findings] == ["error", "note", "note", "note"]
        assert all(f.evidence.saw and f.evidence.used for f in report.findings[1:])


def test_half_agreement_is_a_warning(tmp_path: Path) -> None:
    """Between 0.3 and 0.5 people and the reward are said to disagree, and the run goes on."""
    subject = material()
    write_sheet(subject, tmp_path / "sheet.csv")
    filled = labelled(tmp_path / "sheet.csv", subject, lambda pay, place: f"{pay if place % 2 else place % 7 - 3}")
    report = verdict(subject, filled)
    assert 0.3 <= report.findings[0].evidence.numbers["correlation"] < 0.5
    assert report.findings[0].severity == "warning"
    assert report.ok


def test_every_bad_row_is_named(tmp_path: Path) -> None:
    """All mistakes at once, by the row that a spreadsheet shows."""
    file = tmp_path / "bad.csv"
    file.write_text("decision,label\nd-1,excellent\nd-2,1\nd-2,0\n\nd-3\nd-4,\n", encoding="utf-8")
    with pytest.raises(SheetError) as refused:
        read_labels(file)
    told = str(refused.value)
    assert "row 2: 'excellent' is no number" in told
    assert "row 4: decision d-2 was labelled in row 3 already" in told
    assert "row 6: has 1 cells" in told
    assert "row 7" not in told


def test_labels_of_another_experiment_are_refused() -> None:
    """A sheet belongs to the play that it was written for."""
    with pytest.raises(SheetError, match="row 2: there is no decision d-0"):
        matched(material(), [Label(2, "d-0", 1.0)])


def test_too_few_labels_and_a_single_label_are_errors(tmp_path: Path) -> None:
    """Nothing can be said then, and that is said."""
    subject = material()
    write_sheet(subject, tmp_path / "sheet.csv")
    for say in (lambda pay, place: "1" if place < 5 else "", lambda pay, place: "1"):
        assert not verdict(subject, labelled(tmp_path / "sheet.csv", subject, say)).ok


def test_a_reward_that_people_do_not_share_is_found(tmp_path: Path) -> None:
    """People know the right colour; a reward that pays for crimson only is found out."""

    @term(kind="outcome", reads=["outcome"], at_end=True)
    def crimson(view: View) -> float:
        return float(view.outcome["named"] == "crimson")

    honest, planted = material(), material(terms=(crimson,))
    write_sheet(planted, tmp_path / "sheet.csv")
    people = {d.where: d.pay for d in decisions(honest)}
    where = {d.id: d.where for d in decisions(planted)}
    labels = [
        Label(i, r["decision"], people[where[r["decision"]]]) for i, r in enumerate(rows(tmp_path / "sheet.csv"), 2)
    ]
    planted.own = {"labels": labels}
    assert not audit(planted, ["human-agreement"]).ok
