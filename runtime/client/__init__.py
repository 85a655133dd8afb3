"""A client's side of a conversation: what it asks, what it is asked, and how it finds out what its server speaks."""
