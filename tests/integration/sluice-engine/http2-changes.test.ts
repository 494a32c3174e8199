// 500 changes of the configuration under 50 open streams of HTTP/2: none is broken off, and no connection ends.
import { expect, test } from "bun:test";
import { startDataPlane } from "../../support/data-plane.ts";
import { H2Client } from "../../support/h2-client.ts";
import { GET } from "../../support/h2-wire.ts";
import { type OriginConnection, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";

const STREAMS = 50;
const CHANGES = 500;

test("streams outlive changes of limits, protocols, routes and services, which new requests see", async () => {
  const held: OriginConnection[] = [];
  const origin = startOrigin({
    answer({ target }, connection) {
      if (target !== "/held") return reply(target);
      held.push(connection);
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
      return null;
    },
  });
  const service = { name: "origin", targets: [{ port: origin.port }] };
  const plane = await startDataPlane({
    listener: { engine: "sluice" },
    services: [{ ...service, response_buffer_bytes: 0 }],
    routes: [{ name: "all", service_id: "origin" }],
  });
  const client = await H2Client.connect({ port: plane.port });
  const path = (to: string) =>
    GET.map(([name, value]) => [name, name === ":path" ? to : value] as const);
  const streams = Array.from({ length: STREAMS }, () => client.headers(path("/held")));
  await eventually(() => streams.every((stream) => client.seen(stream).body === "first"));
  for (let change = 0; change < CHANGES; change++) {
    await plane.apply({
      listener: {
        engine: "sluice",
        max_header_bytes: 8192 + change,
        max_concurrent_streams: 60 + (change % 40),
        idle_timeout: 60 + (change % 20),
        http2: change % 2 === 0,
      },
      services: [{ ...service, retries: { count: change % 3 } }],
      routes: [{ name: "all", service_id: "origin", paths: [change % 2 === 0 ? "/" : "/now"] }],
    });
    if (change % 50 === 0) {
      const { outcome, body } = await client.result(client.headers(path("/now")));
      expect([outcome, body]).toEqual(["200", "/now"]);
    }
  }
  for (const connection of held) connection.write("later");
  await eventually(() => streams.every((stream) => client.seen(stream).isComplete));
  expect(new Set(streams.map((stream) => client.seen(stream).body))).toEqual(
    new Set(["firstlater"]),
  );
  expect([client.goAway, client.isClosed]).toEqual([null, false]);
  client.close();
  await plane.stop();
  origin.stop();
});
