// A refused change drops nobody: an instance that blocks, ends or exhausts the thread that creates it does so before a worker has it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";

const files = new PluginFiles();
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: () =>
    new Response(new ReadableStream({ start: (stream) => stream.enqueue("data: begin\n\n") }), {
      headers: { "content-type": "text/event-stream" },
    }),
});
let gateway: Gateway;

const creating = `
  if (own.word === "loop") for (;;) {}
  if (own.word === "exit") process.exit(0);
  if (own.word === "crash") {
    setTimeout(() => { throw Object.assign(new Error("crash"), { stack: "" }); });
    return new Promise<never>(() => {});
  }
  if (own.word === "never") return new Promise<never>(() => {});
  if (own.word === "memory") { const all: Uint8Array[] = []; for (;;) all.push(new Uint8Array(1_000_000).fill(1)); }
  if (own.word === "throw") throw new Error("not this word");
`;

beforeAll(async () => {
  files.write("own.ts", pluginSource("own", { create: creating }));
  gateway = await startGateway({ args: ["--plugins-dir", files.path] });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  const { id } = await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: id, paths: ["/"] });
});

afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
  files[Symbol.dispose]();
});

test("an instance that cannot be created is refused by name and place, and all event streams go on", async () => {
  const before = gateway.log.filter(({ message }) => message.startsWith("worker")).length;
  let ended = 0;
  const streams = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const reader = (await fetch(`http://127.0.0.1:${gateway.httpPort}/events`)).body!.getReader();
      await reader.read();
      // Every further read means that the stream has ended.
      const end = () => void ended++;
      reader.read().then(end, end);
      return { reader };
    }),
  );
  for (const [word, why] of [
    ["loop", "create has not finished after"],
    ["exit", "create has ended its thread"],
    ["crash", "create has ended its thread"],
    ["never", "create has not finished after"],
    ["memory", "create needs more than 512 MiB of memory"],
    ["throw", "not this word"],
  ] as const) {
    const response = await gateway.api("POST", "/api/v1/plugins", {
      name: "own",
      config: { word },
    });
    const { error } = (await response.json()) as { error: string };
    expect({ word, status: response.status, error }).toMatchObject({ word, status: 400 });
    expect({ word, error }).toMatchObject({ error: expect.stringContaining(why) });
    expect(error).toContain("own");
    expect(error).toContain(why);
    expect(await gateway.ok("GET", "/api/v1/plugins")).toHaveLength(0);
  }
  expect(ended).toBe(0);
  expect(gateway.log.filter(({ message }) => message.startsWith("worker")).length).toBe(before);
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: { word: "fine" } });
  for (const { reader } of streams) await reader.cancel();
});
