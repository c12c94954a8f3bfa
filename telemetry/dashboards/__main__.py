"""``python -m telemetry.dashboards``: writes ``deploy/grafana`` and the general alert rules anew."""

from pathlib import Path

from telemetry.dashboards.boards import BOARDS
from telemetry.dashboards.grafana import dashboard_json
from telemetry.metrics.alerts import general_rules

DEPLOY = Path(__file__).parents[2] / "deploy"
"""Where they stand."""


def files() -> dict[Path, str]:
    """Every generated file with its content."""
    boards = {DEPLOY / "grafana" / "dashboards" / f"{b.uid}.json": dashboard_json(b) for b in BOARDS}
    return {**boards, DEPLOY / "prometheus" / "rules.yaml": general_rules()}


def main() -> None:
    """Write them."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
