"""Who feeds whom: choosing the network with the least total load within every machine's capacity.

Nothing stands here yet. It will hold, in process and pure: the problem and its costs, the rewritability graph,
the integer program (``solver.py`` alone will import OR-Tools), latency improvement by LOGA, incremental changes,
and a verifier that shares no code with the rest.
"""
