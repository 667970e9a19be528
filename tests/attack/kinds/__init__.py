"""The kinds of input, a module each with its `KIND`."""
