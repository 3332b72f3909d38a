"""One self-contained HTML page of a fitted co-clustering, or of several side by side."""

from ccot.report.page import show_report, write_report

__all__ = ["show_report", "write_report"]
