"""The Debug Adapter Protocol: editors as clients of a debugging session.

`server` reads requests and writes answers, `adapter` passes each request to the function that is
registered for it; those are in modules by topic, and use the same session as `rvm debug`.  The
protocol: https://microsoft.github.io/debug-adapter-protocol/.
"""
