// Bodies of targets over TLS that end without close_notify, which Bun does not report: framing alone shows that they are cut.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { startTlsRelay, type TlsRelay } from "../../support/tls-relay.ts";

let origin: Origin;
let relay: TlsRelay;
let gateway: RunningDataPlane;

beforeAll(async () => {
  origin = startOrigin({ tls: await selfSigned() });
  relay = await startTlsRelay(origin.port);
  gateway = await startDataPlane({
    listener: { engine: "sluice" },
    services: [
      {
        name: "origin",
        protocol: "https",
        targets: [{ port: relay.port }],
        tls: { verify: false },
        response_buffer_bytes: 0,
      },
    ],
    routes: [{ name: "all", service_id: "origin" }],
  });
});
afterAll(async () => {
  await gateway.stop();
  relay.stop();
  origin.stop();
});

const OK = "HTTP/1.1 200 OK\r\n";

test.each([
  {
    framing: "a length",
    answer: `${OK}Content-Length: 8\r\n\r\nhalf`,
    isComplete: false,
  },
  {
    framing: "chunks",
    answer: `${OK}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`,
    isComplete: false,
  },
  // docs/limits-of-bun.md: RFC 9112 section 9.8 would have it incomplete.
  { framing: "neither", answer: `${OK}\r\nhalf`, isComplete: true },
])("with $framing, cut: complete is $isComplete", async ({ answer, isComplete }) => {
  origin.answer = answer;
  const client = await connectRaw({ port: gateway.port });
  client.write("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  await client.until("half");
  relay.cut();
  const { answers } = read(await client.untilClosed(), true);
  expect(answers[0]).toMatchObject({ status: 200, body: "half", isComplete });
});

test("with neither, ended as TLS ends: complete", async () => {
  origin.answer = (_, connection) => {
    connection.write(`${OK}\r\nwhole`);
    connection.end();
    return null;
  };
  const client = await connectRaw({ port: gateway.port });
  client.write("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const { answers } = read(await client.untilClosed(), true);
  expect(answers[0]).toMatchObject({ status: 200, body: "whole", isComplete: true });
});
