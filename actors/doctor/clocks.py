"""Whether two clocks agree. The database's decides about leases and due times and stands in signatures; this machine's
stands in events and logs. Neither being wrong breaks a rule of a session, but receivers refuse what looks old."""

from __future__ import annotations

from actors.doctor.finding import Finding, fail, ok, warn

ABOUT = "clock"
NOTICED_S = 2.0
REFUSED_S = 60.0
"""Receivers refuse a signature that is 5 minutes off; a minute is what a clock without NTP drifts in some weeks."""

_DO = "Have NTP (chrony, systemd-timesyncd) set the clocks of all machines."


def compared(whose: str, ahead_s: float, doubt_s: float) -> Finding:
    """`ahead_s`: by how much that clock is ahead of this machine's, give or take `doubt_s`."""
    off_s = max(0.0, abs(ahead_s) - doubt_s)
    if off_s < NOTICED_S:
        return ok(ABOUT, f"The clock of {whose} and this machine's agree.")
    what = f"The clock of {whose} is {_span(off_s)} {'ahead of' if ahead_s > 0 else 'behind'} this machine's."
    return fail(ABOUT, what, _DO) if off_s >= REFUSED_S else warn(ABOUT, what, _DO)


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} minutes"
