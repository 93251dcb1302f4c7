"""Programs of the demos. They are read as text and run on ranks; nothing imports them."""
