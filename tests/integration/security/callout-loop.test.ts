// What a plugin sends to its own gateway is refused by the listeners and by the management API; the whole product runs.
import { afterAll, expect, test } from "bun:test";
import { createCallout } from "../../../src/dataplane/plugin/callout.ts";
import { useGateway } from "../api/client.ts";

const client = useGateway();
const origin = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) => new Response(request.headers.get("cdn-loop")),
});
afterAll(() => origin.stop(true));

/** By what the gateway calls itself towards applications. */
async function ownToken(listener: string): Promise<string> {
  const service = await client.create("/services", {
    name: "application",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await client.create("/routes", { name: "all", paths: ["/"], service_id: service.id });
  return (await fetch(listener)).text();
}

test("a plugin's request to its own gateway is refused by listeners and by the management API", async () => {
  const listener = `http://127.0.0.1:${client.gateway.httpPort}/`;
  const settings = `${client.url}/api/v1/settings`;
  const own = createCallout({ loopToken: await ownToken(listener) });
  const other = createCallout({ loopToken: "sluice-of-somebody-else" });
  const statusOf = async (callout: typeof own, url: string, method = "GET") =>
    (await callout({ url, method, timeoutMs: 5000 })).status;

  expect(await statusOf(other, listener)).toBe(200);
  expect(await statusOf(own, listener)).toBe(508);
  expect(await statusOf(other, settings)).toBe(200);
  expect(await statusOf(own, settings)).toBe(403);
  expect(await statusOf(own, settings.replace("127.0.0.1", "localhost"), "PATCH")).toBe(403);
});
