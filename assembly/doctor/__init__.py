"""The doctor: whether what a file declares is there, before anything is built on it.

    findings = examined(declared_by(experiment, document))      # all at once, each within its time
    print(told(findings))

A file may be right and a service away: that is never a problem of the file (exit 2), but of the service (exit 3).
"""

from assembly.doctor.examining import Checkup, Finding, examined, failures, waited_for
from assembly.doctor.experiment import declared_by
from assembly.doctor.printed import as_json, told

__all__ = ["Checkup", "Finding", "as_json", "declared_by", "examined", "failures", "told", "waited_for"]
