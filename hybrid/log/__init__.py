"""A run on disk: all code that writes or reads its files.

RUN/manifest.json              configuration, observations, commands, extent of each file (`manifest`)
RUN/questions.jsonl            the questions with their targets, so that scoring needs no data (`questions`)
RUN/log.txt                    start and end of each command, retries, tool faults, warnings (`running/run_log.py`)
RUN/replies.jsonl              replies to unfinished questions, and captions of images (`running/replies.py`)
RUN/SOLVER/attempts.jsonl      a line for each finished question with every step, and {id, error} for each that failed
RUN/SOLVER/damaged.jsonl       unreadable lines of attempts.jsonl, moved there when the run was resumed
RUN/SOLVER/scores.jsonl        one score per line, sorted by id
RUN/SOLVER/scores.json         the inputs of these scores (`scoring/tally.py`)

An incomplete run is refused with a message about the missing part: the manifest has the number of lines of each file,
their bytes and their sha256. An unreadable line of attempts.jsonl is reported, and only its own question is lost. Lines
that match the manifest were checked when they were written: only their ids are read at first and the rest on access, so
memory hardly grows with the number of questions. No secret is written (`hybrid.core.secrets`), but questions are data
and are written unchanged.
"""
