// What speedscope reads of some files, as JSON; it also says whether they keep to its schema.
//
// Usage: viewer.js KIND=FILE...   with speedscope and ajv to be found by `require`.
//
// speedscope is published as one script for a page.  Its importer stands in there as a module that
// is made when it is first asked for: this takes the page's beginning off the end of the script
// and asks for that module.
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const release = path.join(path.dirname(require.resolve("speedscope/package.json")), "dist/release");
const name = fs.readdirSync(release).find((f) => /^speedscope-\w+\.js$/.test(f));
const script = fs.readFileSync(path.join(release, name), "utf8");
const importer = /(\w+)=\{\};\$?\w+\(\1,\{importFromFileSystemDirectoryEntry/.exec(script)[1];
const maker = new RegExp(`\\((\\w+)\\(\\),${importer}\\)`).exec(script)[1];
const page = script.lastIndexOf("console.log(`speedscope v");
const head = script.slice(0, page);
const tail = `globalThis.imported=(n,t)=>(${maker}(),${importer}.importProfileGroupFromText(n,t));})();`;

// The page itself is never shown, so anything will do for it.
const anything = () =>
  new Proxy(function () {}, {
    get: (_, key) => (key === Symbol.toPrimitive ? () => "" : key === "length" ? 0 : anything()),
    apply: anything,
    construct: anything,
    set: () => true,
  });
for (const known of ["window", "document", "navigator", "location", "localStorage", "self"]) {
  Object.defineProperty(globalThis, known, { value: anything(), configurable: true });
}
globalThis.HTMLElement = class {};
globalThis.requestAnimationFrame = () => 0;
const log = [];
console.log = (line) => log.push(line);
vm.runInThisContext(head + tail);

const Ajv = require("ajv");
const schema = JSON.parse(fs.readFileSync(path.join(release, "file-format-schema.json"), "utf8"));
const valid = new Ajv({ strict: false }).compile(schema);

async function read(kind, file) {
  const text = fs.readFileSync(file, "utf8");
  const group = await globalThis.imported(path.basename(file), text);
  const profiles = group.profiles.map((p) => {
    const frames = {};
    p.forEachFrame((f) => (frames[f.name] = [f.getSelfWeight(), f.getTotalWeight()]));
    return { name: p.getName(), total: p.getTotalWeight(), frames };
  });
  const schema = kind === "speedscope" ? valid(JSON.parse(text)) : null;
  return { read: log.pop(), schema, profiles };
}

(async () => {
  const out = {};
  for (const given of process.argv.slice(2)) {
    const [kind, file] = given.split("=");
    out[kind] = await read(kind, file);
  }
  process.stdout.write(JSON.stringify(out));
})();
