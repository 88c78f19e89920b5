"""How the embedded model was made: generated questions, conversations of the true controller, a network, a card.

    python -m hybrid.models.embedded.training write DIR          conversations (about half an hour on two cores)
    python -m hybrid.models.embedded.training train DIR OUT      a checkpoint (under an hour on two cores)

Everything is drawn with the purpose "train" (`hybrid/samples/seeds.py`), so no question of `--data sample` is among it.
`policy.py` says what is taught, `conversations.py` holds them, `vocabulary.py` makes the tokenizer, `architecture.py`
the network, `learn.py` trains it.
"""
