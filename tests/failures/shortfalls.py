"""Cases that ddprun does not pass, and why. They are counted; one that passes fails the run."""

NOT_MEASURED = "this evidence is not collected yet"
NOT_STARTED = "blames a rank for a program that cannot be started"

SHORTFALLS = {
    "an error.json of 4 MB": NOT_MEASURED,
    "the reason on stdout only": NOT_MEASURED,
    "a full /dev/shm": NOT_MEASURED,
    "the memory limit of a worker's own cgroup": NOT_MEASURED,
    "two nodes: the memory limit of a worker's own cgroup": NOT_MEASURED,
    "a memory limit shared with ddprun": NOT_MEASURED,
    "RLIMIT_AS": NOT_MEASURED,
    "a line of 300 KB without its end": NOT_MEASURED,
    "a missing program": NOT_STARTED,
    "a program without permission": NOT_STARTED,
    "a folder as program": NOT_STARTED,
    "a missing interpreter": NOT_STARTED,
    "two nodes: a missing program": NOT_STARTED,
}
