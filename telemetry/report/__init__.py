"""The run report: one page a run, or one page that compares several, which opens without a network."""

from telemetry.report.writing import REPORT_FILE, write_comparison, write_report

__all__ = ["REPORT_FILE", "write_comparison", "write_report"]
