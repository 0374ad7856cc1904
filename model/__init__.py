"""The Transformer of Vaswani et al. (2017): its model, its training and its inside."""
