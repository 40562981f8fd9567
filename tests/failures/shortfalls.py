"""Cases that ddprun does not pass, and why. They are counted; one that passes fails the run."""

SHORTFALLS: dict[str, str] = {}
