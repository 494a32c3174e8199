// User scripts in the executable, which includes the engine.
import { expect } from "bun:test";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { eventually } from "../support/poll.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const source = `export function onRequest(request: { readonly path: string; reply(s: number, o: object): void }) {
  if (request.path === "/loop") for (;;);
  if (request.path === "/fill") for (const all = []; ; ) all.push(new Array(1000).fill(1));
  if (request.path === "/power") for (const large = 3n ** 300000n; ; ) large * large;
  request.reply(200, { body: typeof Bun + typeof process + request.path });
}`;

const { afterAll, beforeAll, describe, test } = needs("executable");

describe("a script", () => {
  let gateway: Gateway;
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`);
    return [response.status, response.status === 200 ? await response.text() : ""];
  };

  beforeAll(async () => {
    gateway = await startGateway({ binary: executable });
  });
  afterAll(() => gateway?.stop());

  test("runs once it is saved, and its errors stay isolated", async () => {
    await gateway.ok("POST", "/api/v1/plugins", { name: "script", config: { source } });
    expect(await ask("/a")).toEqual([200, "undefinedundefined/a"]);
    for (const path of ["/loop", "/fill", "/loop"]) {
      expect(await ask(path)).toEqual([500, ""]);
      expect(await ask("/b")).toEqual([200, "undefinedundefined/b"]);
    }
  });

  test("is stopped during a calculation, and continues in another engine", async () => {
    expect(await ask("/power")).toEqual([500, ""]);
    await eventually(async () => (await ask("/b"))[0] === 200);
  });

  test("that does not parse is rejected with the line", async () => {
    const request = {
      name: "script",
      config: { source: "export function onLog() {\n  let a = ;\n}" },
    };
    await expect(gateway.ok("POST", "/api/v1/plugins", request)).rejects.toThrow("line 2");
  });
});
