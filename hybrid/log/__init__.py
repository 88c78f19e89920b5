"""A run on disk. Everything that writes or reads one goes through here.

RUN/manifest.json              configuration, observations, commands, extent of each file (`manifest`)
RUN/questions.jsonl            the questions with their targets, so that scoring needs no data (`questions`)
RUN/log.txt                    begin and end of each command, retries, tool faults, warnings (`running/run_log.py`)
RUN/replies.jsonl              replies to unfinished questions, and captions of images (`running/replies.py`)
RUN/SOLVER/attempts.jsonl      a line for each finished question with every step, and {id, error} for each that failed
RUN/SOLVER/damaged.jsonl       lines of attempts.jsonl that could not be read, moved there when the run went on
RUN/SOLVER/scores.jsonl        one score a line, sorted by id
RUN/SOLVER/scores.json         what these scores were made from (`scoring/tally.py`)

A run is whole or it is refused with what is missing: the manifest has the number of lines, their bytes and sha256. A
line of attempts.jsonl that cannot be read is named, and costs its own question only. Lines that are as the manifest has
them were checked when they were written: only their ids are read, and the rest when it is asked for, so that the memory
of a run hardly grows with its questions. No secret is written (`hybrid.secrets`); questions are data and stay as is.
"""
