// Expressions and WebSocket routes of Kong on a running gateway: which requests they match after the import.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ask, startOpenOrigin } from "../../e2e/import/judge.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const [one, two] = [startOpenOrigin("one"), startOpenOrigin("two")];
const sockets = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request, server) =>
    server.upgrade(request) ? undefined : new Response("ok", { headers: { "x-open": "plain" } }),
  websocket: { message: (socket, message) => void socket.send(message) },
});

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  const answer = await gateway.api("POST", "/api/v1/import?from=kong&mode=replace", {
    _format_version: "3.0",
    consumers: [{ username: "bob", keyauth_credentials: [{ key: "secret" }] }],
    services: [
      {
        name: "one",
        url: `http://127.0.0.1:${one.port}`,
        routes: [
          {
            name: "guarded",
            priority: 5,
            expression:
              'http.host == "a.test" && (http.path ^= "/admin" || http.path == "/exact" || http.path ~ "^/re/[0-9]+$")',
            plugins: [{ name: "key-auth" }],
          },
          {
            name: "beta",
            priority: 9,
            expression: 'http.headers.x_beta == "yes" && http.method == "POST"',
          },
        ],
      },
      {
        name: "two",
        url: `http://127.0.0.1:${two.port}`,
        routes: [
          { name: "rest", hosts: ["a.test"], paths: ["/"] },
          {
            name: "moved",
            hosts: ["moved.test"],
            paths: ["/"],
            plugins: [{ name: "redirect", config: { location: "/new", status_code: 302 } }],
          },
        ],
      },
      {
        name: "chat",
        url: `ws://127.0.0.1:${sockets.port}`,
        routes: [{ name: "chat", protocols: ["ws", "wss"], hosts: ["chat.test"] }],
      },
    ],
  });
  expect(answer.status).toBe(200);
});
afterAll(async () => {
  await gateway?.stop();
  for (const server of [one, two, sockets]) await server.stop(true);
});

test.each([
  ["a.test", "/", {}, 200, "two"],
  ["a.test", "/admin", {}, 401, null],
  ["a.test", "/adminx/y", {}, 401, null],
  ["a.test", "/ADMIN", {}, 200, "two"],
  ["a.test", "//admin", {}, 401, null],
  ["a.test", "/exact", {}, 401, null],
  ["a.test", "/exact/x", {}, 200, "two"],
  ["a.test", "/re/12", {}, 401, null],
  ["a.test", "/re/x", {}, 200, "two"],
  ["a.test", "/admin", { fields: "apikey: secret\r\n" }, 200, "one"],
  ["a.test", "/x", { method: "POST", fields: "X-Beta: yes\r\n" }, 200, "one"],
  ["a.test", "/x", { method: "POST", fields: "X-Beta: no\r\n" }, 200, "two"],
  ["b.test", "/x", { method: "POST", fields: "X-Beta: yes\r\n" }, 200, "one"],
  ["b.test", "/x", {}, 404, null],
  ["chat.test", "/", {}, 404, null],
  ["moved.test", "/", {}, 302, null],
  ["moved.test", "/new", {}, 403, null],
] as const)("http://%s%s with %j gets %d from %s", async (host, path, rest, status, open) => {
  expect(await ask({ host, path, ...rest }, gateway.httpPort)).toMatchObject({ status, open });
});

test("a WebSocket route serves handshakes", async () => {
  const client = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}/`, {
    headers: { host: "chat.test" },
  } as never);
  const message = await new Promise((resolve, reject) => {
    client.onopen = () => client.send("hello");
    client.onmessage = ({ data }) => resolve(data);
    client.onerror = () => reject(new Error("no WebSocket"));
  });
  client.close();
  expect(message).toBe("hello");
});
