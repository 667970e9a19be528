"""The intermediate representation: nodes over leaf operations, made from statements, and passes."""
