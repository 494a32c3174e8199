// Memory alerts: the running product and a receiver on a real socket.
import { expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();

test("a gateway short of memory alerts once, and once when it recovers", async () => {
  // biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
  const received: any[] = [];
  const hook = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      received.push(await request.json());
      return new Response("thanks");
    },
  });
  try {
    await api.create("/alerts", {
      name: "ops",
      type: "webhook",
      events: ["overload"],
      // Filters by service and route do not apply to alerts of the whole gateway.
      service_ids: [(await api.create("/services", { name: "shop" })).id],
      config: { url: `http://127.0.0.1:${hook.port}/` },
    });
    const setMark = async (bytes: number) => {
      const body = { limits: { max_memory_bytes: bytes } };
      expect((await api.call("PATCH /settings", { body })).status).toBe(200);
    };
    await setMark(10_000_000);
    await eventually(() => received.length === 1);
    expect(received[0]).toMatchObject({
      event: "overload",
      status: "firing",
      title: "Memory is short",
      object: { kind: "gateway", name: "gateway" },
      message: "The limit is 9 MiB. The gateway responds to new requests with 503.",
    });
    await setMark(0);
    await eventually(() => received.length === 2);
    expect(received[1]).toMatchObject({
      event: "overload",
      status: "resolved",
      title: "There is enough memory again",
    });
  } finally {
    await hook.stop(true);
  }
});
