// How Bun.serve parses request targets, over a raw socket: a change in a new version of Bun must be noticed.
import { afterAll, expect, test } from "bun:test";
import { normalizeHost } from "../../../src/http/authority.ts";
import { splitTarget } from "../../support/request-target.ts";

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  development: false,
  fetch: (req) =>
    Response.json({
      url: req.url,
      host: req.headers.get("host"),
      cookie: req.headers.get("cookie"),
    }),
});
afterAll(() => server.stop(true));

interface Seen {
  readonly url: string;
  readonly host: string | null;
  readonly cookie: string | null;
}

/** The response's status, and what the handler received if Bun called it. */
function send(head: string): Promise<{ status: string; seen: Seen | null }> {
  const { promise, resolve } = Promise.withResolvers<{ status: string; seen: Seen | null }>();
  let answer = "";
  void Bun.connect({
    hostname: "127.0.0.1",
    port: server.port!,
    socket: {
      open: (socket) => void socket.write(Buffer.from(head, "latin1")),
      data: (_, bytes) => {
        answer += bytes.toString();
      },
      close: () => {
        const [top = "", body = ""] = answer.split("\r\n\r\n");
        const status = top.slice(9, 12);
        resolve({ status, seen: status === "200" ? (JSON.parse(body) as Seen) : null });
      },
    },
  });
  return promise;
}

const get = (target: string, host = "h") =>
  send(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

test.each([
  ["/a/%2e%2e/b", "http://h/b", "/b"],
  ["/a/.%2E/b", "http://h/b", "/b"],
  ["/a/%2E/b", "http://h/a/b", "/a/b"],
  ["/a/./b", "http://h/a/b", "/a/b"],
  ["/../../etc", "http://h/etc", "/etc"],
  ["/a\\..\\b", "http://h/b", "/b"],
  ["/a/..", "http://h/", "/"],
  ["/a;x=/../b", "http://h/b", "/b"],
  ["/a/..%2fb", "http://h/a/..%2fb", null],
  ["/a%5c..%5cb", "http://h/a%5c..%5cb", null],
  ["/a/..;/b", "http://h/a/..;/b", null],
  ["/a/%252e%252e/b", "http://h/a/%252e%252e/b", "/a/%252e%252e/b"],
  ["/a//b", "http://h/a//b", "/a//b"],
  ["//a/b", "http://h//a/b", "//a/b"],
  ["/%61", "http://h/%61", "/a"],
  ["/%00", "http://h/%00", null],
  ["/%zz", "http://h/%zz", null],
  ["/\xc3\xa9", "http://h/%C3%A9", "/%C3%A9"],
  ["/\xff", "http://h/%EF%BF%BD", "/%EF%BF%BD"],
  ["/a\x7fb", "http://h/a%7Fb", "/a%7Fb"],
  ['/a"<>^`{}|', "http://h/a%22%3C%3E%5E%60%7B%7D|", "/a%22%3C%3E%5E%60%7B%7D|"],
  ["/?", "http://h/?", "/"],
  ["/a#b", "http://h/a#b", null],
  ["http://other:99/x?y", "http://h/x?y", "/x"],
  ["https://user@other/x", "http://h/x", "/x"],
  ["http://other", "http://h/", "/"],
])("the target %s arrives as %s", async (target, url, path) => {
  const { seen } = await get(target);
  expect(seen?.url).toBe(url);
  expect(splitTarget(url)?.path ?? null).toBe(path);
});

test.each([
  ["*", "400"],
  ["", "400"],
  ["?a", "400"],
  ["#a", "400"],
  ["a/b", "400"],
  ["http:/x", "400"],
  ["ftp://other/x", "400"],
  ["/a\x01b", "505"],
  ["/a\0b", "505"],
  ["/a\tb", "505"],
  ["/a b", "505"],
  [`/${"a".repeat(17_000)}`, "431"],
])("the target %j never reaches the handler: %s", async (target, status) => {
  expect(await get(target)).toEqual({ status, seen: null });
});

test.each([
  ["999.1.1.1", "http://999.1.1.1/p/../q"],
  ["a.0x", "http://a.0x/p/../q"],
  ["a:99999", "http://a:99999/p/../q"],
  ["a:x", "http://a:x/p/../q"],
  ["[::1", "http://[::1/p/../q"],
  ["[fe80::1%eth0]", "http://[fe80::1%eth0]/p/../q"],
  ["u@x/y?", "/p/../q"],
  ["a, b", "/p/../q"],
  ["a b", "/p/../q"],
  ["", "/p/../q"],
])(
  "with the Host %j the path arrives unresolved, and both host and path are rejected",
  async (host, url) => {
    const { seen } = await get("/p/../q", host);
    expect(seen).toMatchObject({ url, host });
    expect(normalizeHost(host)).toBeNull();
    expect(splitTarget(url)).toBeNull();
  },
);

test("two Host fields are joined by a comma, which no valid host contains", async () => {
  const { seen } = await send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n");
  expect(seen?.host).toBe("a, b");
});

test("several Cookie fields are joined so that each cookie can still be found", async () => {
  const { seen } = await send(
    "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nCookie: b=2\r\nConnection: close\r\n\r\n",
  );
  expect(seen?.cookie).toBe("a=1; b=2");
});

test("HTTP/1.0 may come without a Host, and then the URL is the bare target", async () => {
  const { seen } = await send("GET /p HTTP/1.0\r\n\r\n");
  expect(seen).toMatchObject({ url: "/p", host: null });
});
