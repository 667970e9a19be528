"""The Debug Adapter Protocol: editors as clients of a debugging session.

`server` reads requests and writes answers, `adapter` hands each request to the function that is
entered for it; those stand in modules by what they are about, and use the session that
`rvm debug` uses.  The protocol: https://microsoft.github.io/debug-adapter-protocol/.
"""
