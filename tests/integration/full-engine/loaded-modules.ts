// A worker of the gateway that tells whether Node's HTTP/2 is in memory, before and after a listener with the full engine.
import { heapStats } from "bun:jsc";

declare const self: Worker;

/** Its native parser is a global of the thread from the import on. */
const isLoaded = () => "H2FrameParser" in heapStats().objectTypeCounts;

// The worker as it starts: all code of the data plane.
await import("../../../src/worker.ts");
const whenStarted = isLoaded();
const { startDataPlane } = await import("../../support/data-plane.ts");

const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
const sketch = {
  services: [{ name: "s", targets: [{ port: origin.port ?? 0 }] }],
  routes: [{ name: "r", service_id: "s" }],
};
const standard = await startDataPlane(sketch);
const answer = await (await fetch(standard.url)).text();
const whenServed = isLoaded();
await standard.stop();

const full = await startDataPlane({ ...sketch, listener: { engine: "full" } });
const whenBound = isLoaded();
const { H2Client } = await import("../../support/h2-client.ts");
const client = await H2Client.connect({ port: full.port });
const stream = client.headers([
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "a.test"],
]);
const { body } = await client.result(stream);
client.close();
const whenUsed = isLoaded();
await full.stop();
await origin.stop(true);
self.postMessage({ answer, body, whenStarted, whenServed, whenBound, whenUsed });
