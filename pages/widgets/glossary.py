"""Words that a newcomer may not know, each explained once; tooltips take them from here."""

GLOSSARY = {
    "beam": "At each step beam search keeps the most probable prefixes, here 4, and continues each of them. Greedy "
    "decoding keeps one.",
    "typed target": "A translation that you write. The model reads it instead of decoding its own, and every number "
    "says how the model sees your words.",
    "teacher-forced": "The decoder reads a finished translation, token by token, whatever it would have written "
    "itself. That way two runs have the same rows and can be compared.",
    "nats": "The unit of natural logarithms. A token with log p = −1 nat has the probability e⁻¹ = 37 %, −2 nats 14 %; "
    "1 nat is 1.44 bits.",
    "confidence": "The largest weight of each row, averaged over the rows: 1 means that every token attends to one "
    "token only.",
    "norm-weighted": "How much each key really adds to the output: its attention weight times the length of its value "
    "vector after W_O. A large weight on a short vector adds little.",
    "rollout": "Attention followed through all layers down to the input: the layers' maps, averaged over heads and "
    "mixed half and half with the residual, are multiplied.",
    "renormalise": "Divide what is left of a row by its sum, so that the row sums to 1 again.",
    "entropy": "How spread out a row of weights is, in bits: 0 if all weight is on one key, 3 if it is spread evenly "
    "over 8 keys.",
    "temperature": "What the softmax reads is divided by τ: below 1 the weights become sharper, above 1 flatter; 1 is "
    "the model as trained.",
}


def define(*words: str) -> str:
    """A tooltip that explains these words of the glossary."""
    if len(words) == 1:
        return GLOSSARY[words[0]]
    return "  \n".join(f"**{word.capitalize()}**: {GLOSSARY[word]}" for word in words)
