"""The training of the embedded model: generated questions, conversations of the real controller, a network.

    python -m training write DIR          conversations (about half an hour on two cores)
    python -m training train DIR OUT      a checkpoint (under an hour on two cores)

Everything is drawn with the purpose "train" (`hybrid/samples/seeds.py`), so no question of `--data sample` is included.
`batches.toml` lists how much is generated, `policy.py` defines the calls and answers that are taught, `sight.py` the
descriptions of pictures. `conversations.py` generates conversations, `scenes.py` and `drills.py` generate exercises;
`pictures.py` and `lessons.py` convert them to pixels and tokens, `curriculum.py` orders them. `vocabulary.py` makes the
tokenizer, `architecture.py` the network; `optimiser.py` and `learn.py` train it.
"""
