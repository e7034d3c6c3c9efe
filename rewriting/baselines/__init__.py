"""What the Delta paper does, and the obvious ways: to compare with, never to run in production.

``embedding_graphs``: every pair tested, and Algorithm 3 with its trie of label sets. ``cycle_removal``: cycles of
the embedding graph broken by a feedback arc set. ``greedy_covers``: Algorithm 4 in its own order, by how many
attributes a view adds.
"""
