"""How the embedded model was made: generated questions, conversations of the true controller, a network.

    python -m training write DIR          conversations (about half an hour on two cores)
    python -m training train DIR OUT      a checkpoint (under an hour on two cores)

Everything is drawn with the purpose "train" (`hybrid/samples/seeds.py`), so no question of `--data sample` is among it.
`batches.toml` says how much is generated, `policy.py` which calls and answers are taught, `sight.py` what is said of a
picture. `conversations.py` holds conversations, `scenes.py` and `drills.py` make exercises; `pictures.py` and
`lessons.py` make tokens and pixels of them, `curriculum.py` puts them in order. `vocabulary.py` makes the tokenizer,
`architecture.py` the network, `optimiser.py` its steps; `learn.py` trains it.
"""
