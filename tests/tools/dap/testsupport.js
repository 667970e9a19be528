// Drives `rvm dap` with the client that VS Code's own debug adapters are tested with.
// Arguments: the `rvm` command, and the folder of the programs.

const assert = require("node:assert");
const path = require("node:path");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const [rvm, folder] = process.argv.slice(2);
const calls = path.join(folder, "calls.rasm");
const window_ = path.join(folder, "window.rasm");
const inputs = { a: 3, b: 5 };
const thread = { threadId: 1 };

async function values(dc) {
  const frame = (await dc.stackTraceRequest(thread)).body.stackFrames[0];
  const scopes = (await dc.scopesRequest({ frameId: frame.id })).body.scopes;
  const { variablesReference } = scopes.find((s) => s.name === "Parameters");
  const found = (await dc.variablesRequest({ variablesReference })).body.variables;
  return Object.fromEntries(found.map((v) => [v.name, v.value]));
}

const tests = {
  async "stops at a breakpoint, and at the same one going back"(dc) {
    await dc.hitBreakpoint({ program: calls, inputs }, { path: calls, line: 11 });
    assert.deepEqual(await values(dc), { p: "4", q: "9" });
    const there = dc.assertStoppedLocation("end", { path: calls, line: 7 });
    await dc.continueRequest(thread);
    await there;
    const back = dc.assertStoppedLocation("breakpoint", { path: calls, line: 11, column: 5 });
    await dc.reverseContinueRequest(thread);
    await back;
    const start = dc.assertStoppedLocation("entry", { path: calls, line: 2 });
    await dc.reverseContinueRequest(thread);
    await start;
    assert.deepEqual(await values(dc), { a: "3", b: "5" });
  },

  async "stops at a conditional breakpoint"(dc) {
    const condition = "b == 12";
    const set = dc.waitForEvent("initialized").then(async () => {
      const source = { path: calls };
      await dc.setBreakpointsRequest({ source, breakpoints: [{ line: 7, condition }] });
      await dc.configurationDoneRequest();
    });
    const stop = dc.assertStoppedLocation("breakpoint", { path: calls, line: 7 });
    await Promise.all([set, dc.launch({ program: calls, inputs }), stop]);
  },

  async "steps both ways"(dc) {
    await Promise.all([
      dc.configurationSequence(),
      dc.launch({ program: calls, inputs, stopOnEntry: true }),
      dc.assertStoppedLocation("entry", { path: calls, line: 2 }),
    ]);
    for (const [step, line] of [
      ["next", 3],
      ["stepIn", 10],
      ["stepOut", 5],
      ["stepBack", 3],
      ["stepBack", 2],
    ]) {
      const stop = dc.assertStoppedLocation("step", { path: calls, line });
      await dc[`${step}Request`](thread);
      await stop;
    }
  },

  async "tells of what is printed"(dc) {
    await Promise.all([
      dc.configurationSequence(),
      dc.launch({ program: calls, inputs, stopAtEnd: false }),
      dc.assertOutput("stdout", "a is 4\n"),
      dc.waitForEvent("exited"),
      dc.waitForEvent("terminated"),
    ]);
  },

  async "stops at a failed check"(dc) {
    const failing = { y: "zeros(4)", x: [5, 6, 7, 8], w: 2 };
    await Promise.all([
      dc.configurationSequence(),
      dc.launch({ program: window_, inputs: failing }),
      dc.assertStoppedLocation("exception", { path: window_, line: 12 }),
    ]);
    const info = (await dc.exceptionInfoRequest(thread)).body;
    assert.equal(info.exceptionId, "R001");
    assert.match(info.description, /total = 5, expected = 0/);
    const stop = dc.assertStoppedLocation("goto", { path: window_, line: 11 });
    await dc.evaluateRequest({ expression: "last total", context: "repl" });
    await stop;
  },

  async "refuses what it can't do"(dc) {
    await dc.initializeRequest();
    await assert.rejects(dc.launchRequest({ program: path.join(folder, "none.rasm") }), /U011/);
    await assert.rejects(dc.customRequest("frobnicate"), /U041/);
  },
};

(async () => {
  for (const [name, test] of Object.entries(tests)) {
    const dc = new DebugClient(rvm, "dap", "rvm");
    dc.defaultTimeout = 60000;
    await dc.start();
    await test(dc);
    await dc.stop();
    console.log(`ok ${name}`);
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
