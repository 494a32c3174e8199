// Responses of devices through a real nginx and through the gateway: what nginx serves, the gateway serves with the same content. Needs nginx.
import { expect } from "bun:test";
import { startDataPlane } from "../support/data-plane.ts";
import { needs } from "../support/needs.ts";
import { type Nginx, startNginx } from "../support/nginx.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { exchange } from "../support/raw-exchange.ts";

const { afterAll, beforeAll, test } = needs("nginx");

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

const rows: [response: string, why: string][] = [
  ["HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "lines end in LF"],
  ["HTTP/1.1 200 OK\r\nX: y\nContent-Length: 2\n\nok", "the fields of a script end in LF"],
  [`${OK}X: y\r\r\nContent-Length: 2\r\n\r\nok`, "more than one CR"],
  ["HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", "two blanks in the status line"],
  ["HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", "a minor version"],
  ["HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "no reason"],
  [`${OK}${OK}Content-Length: 2\r\n\r\nok`, "the status line twice"],
  [`${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`, "a length twice"],
  [`${OK}Content-Length: 2\r\n\r\nokXX`, "bytes beyond the length"],
  [`${CHUNKED}2 \r\nok\r\n0\r\n\r\n`, "a blank behind a size"],
  [`${CHUNKED}2\nok\n0\n\n`, "chunks with LF"],
  [`${CHUNKED}2\r\nok\r\n0\r\n\r\nX`, "bytes behind the chunks"],
  [
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "chunked in HTTP/1.0",
  ],
  ["HTTP/1.1 204 No Content\r\n\r\nok", "a body behind 204"],
  ["HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok", "a body behind 304"],
];

let origin: Origin;
let nginx: Nginx;
let port = 0;
let stop = async (): Promise<void> => {};

beforeAll(async () => {
  origin = startOrigin({
    answer: ({ target }, connection) => {
      connection.write(rows[Number(target.slice(1))]?.[0] ?? OK);
      connection.end();
      return null;
    },
  });
  const target = `127.0.0.1:${origin.port}`;
  nginx = await startNginx({
    files: { "index.html": "" },
    servers: (own) => `server {
      listen 127.0.0.1:${own};
      server_name device.test;
      location / { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://${target}; }
    }`,
  });
  const gateway = await startDataPlane({
    services: [{ name: "device", targets: [{ port: origin.port }] }],
    routes: [{ name: "all", service_id: "device" }],
  });
  ({ port } = gateway);
  stop = () => gateway.stop();
});
afterAll(async () => {
  await stop();
  await nginx?.stop();
  origin?.stop();
});

test.each(rows.map(([, why], at) => [why, at] as const))("%s (%d)", async (_, at) => {
  const bytes = `GET /${at} HTTP/1.1\r\nHost: device.test\r\n\r\n`;
  const [theirs, ours] = await Promise.all([
    exchange(bytes, { port: nginx.port }),
    exchange(bytes, { port }),
  ]);
  const seen = ({ answers: [answer] }: typeof ours) => [answer?.status, answer?.body];
  expect(seen(ours)).toEqual(seen(theirs));
  expect([200, 204, 304]).toContain(ours.answers[0]?.status ?? 0);
});
