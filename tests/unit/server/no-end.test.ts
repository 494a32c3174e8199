// Our own engine never ends a socket of Bun by `end`, which leaks it under TLS (see integration/sluice-engine/traps).
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../../../src/dataplane/server");
const FILES = ["peer-socket.ts", "socket-listener.ts", ...new Glob("http1/*.ts").scanSync(ROOT)];
/** A call on what is named a socket; the writer of a body has an `end` of its own. */
const ENDS_SOCKET = /(?:socket|accepted|raw)\w*\??\.end\(/i;

test.each(FILES)("%s has no end of a socket", (file) => {
  const text = readFileSync(join(ROOT, file), "utf8");
  expect(text.split("\n").filter((line) => ENDS_SOCKET.test(line))).toEqual([]);
  expect("this.#socket.end(data)").toMatch(ENDS_SOCKET);
});
