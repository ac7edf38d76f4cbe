"""The processes of a cluster, one file each: ingress takes jobs in, worker runs turns, outbox delivers, clock wakes."""
