"""The text commands of a session, a module for each group."""
