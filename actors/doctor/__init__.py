"""What is wrong with a deployment, and what to do about it. One file judges one kind of thing, from values alone; only
`examination` asks anybody for them. Nothing is changed here, and no finding shows a secret."""
