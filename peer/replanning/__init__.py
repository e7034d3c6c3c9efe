"""Planning anew over all subscriptions: a snapshot of the source, a Spark batch beside this process, a proposal.

``files`` writes what the batch reads and reads what it wrote; ``batch`` runs it; ``planning`` makes one plan,
again if it is stale by then; ``due`` says when one is due; ``service`` does it for as long as it runs. The
batch is the command ``distributary plan``: Spark is never imported here.
"""
