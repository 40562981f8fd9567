"""Cases that ddprun does not pass, and why. They are counted; one that passes fails the run."""

SHORTFALLS = {
    "two nodes: a missing program": "notes of the coordinator's node follow its error line",
}
