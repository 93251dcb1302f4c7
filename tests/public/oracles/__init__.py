"""What a right submission returns, computed in one process without parallelism."""
