"""`rvm dap`: a server for editors, by the Debug Adapter Protocol."""

from __future__ import annotations

import rich_click as click


@click.command("dap")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Serve over TCP instead, on this computer only; port 0 chooses a free port.",
)
def command(listen: str | None) -> None:
    """Serve editors that speak the Debug Adapter Protocol, over standard input and output.

    Editors start this themselves: docs/editors.md describes the setup.

    rvm dap --listen 127.0.0.1:4711
    """
    from rvm_dap.server import address_of, serve_stdio, serve_tcp

    if listen is None:
        serve_stdio()
        return
    host, port = address_of(listen)
    serve_tcp(host, port, lambda h, p: click.echo(f"listening at {h}:{p}", err=True))
