// What a node does with the addresses of others: hostile responses, certificates, redirects; and what users of each role see.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE_TOKEN_HEADER } from "../../src/control/node-reads.ts";
import { SecretBox } from "../../src/crypto/secret-box.ts";
import { NodeTokens } from "../../src/fleet/node-token.ts";
import { selfSigned } from "../support/certificate.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { openEvents } from "../support/event-client.ts";
import { clockOff, fakeTime } from "../support/faketime.ts";
import { TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);

/** Two nodes; the second one with these flags. */
async function pair(args: readonly string[]): Promise<TestFleet> {
  const fleet = await TestFleet.start(2, { node: (name) => (name === "n2" ? { args } : {}) });
  cleanups.push(() => fleet.stop());
  await sees(fleet.nodes[0] as Gateway, 2);
  return fleet;
}

const why = async (node: Gateway, read: string): Promise<string | undefined> =>
  (await node.ok("GET", `/api/v1/${read}`)).missing[0]?.why;

const sees = (node: Gateway, count: number) =>
  eventually(async () => {
    const { nodes, missing } = await node.ok("GET", "/api/v1/stats?node=all");
    return nodes.length + missing.length === count;
  });

const encoder = new TextEncoder();

/** Sends a piece again and again, as fast as it is read. */
const endless = (piece: Uint8Array) =>
  new ReadableStream({ pull: (controller) => controller.enqueue(piece) });

test("hostile responses at a node's address are named and cost no more than their bounds", async () => {
  const received: { readonly target: string; readonly token: string }[] = [];
  let respond: (url: URL) => Response | Promise<Response> = () => new Response("");
  const hostile = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const url = new URL(request.url);
      const token = request.headers.get(NODE_TOKEN_HEADER) ?? "";
      received.push({ target: `${url.pathname}${url.search}`, token });
      return respond(url);
    },
  });
  cleanups.push(() => hostile.stop(true));
  const fleet = await pair(["--advertise", `http://127.0.0.1:${hostile.port}`]);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const requests = "requests?node=all&limit=1";
  const unreadable = "its response cannot be read";

  received.length = 0;
  respond = () => new Response(null, { status: 302, headers: { location: "/elsewhere" } });
  expect(await why(first, requests)).toBe("it responded with status 302");
  expect(received.map(({ target }) => target)).toEqual(["/api/v1/requests?limit=1"]);

  respond = () => new Response("", { status: 401 });
  expect(await why(first, requests)).toStartWith("it refused the token of this node");

  const texts = ["", "<html>", "null", "{}", '"x"', '[{"id":1,"time":"x"}]', "[null]"];
  for (const text of texts) {
    respond = () => new Response(text);
    expect([text, await why(first, requests)]).toEqual([text, unreadable]);
  }
  for (const text of ["null", "[]", '{"now":[["total","","",{"requests":"9","buckets":[]}]]}']) {
    respond = () => new Response(text);
    expect([text, await why(first, "stats?node=n2")]).toEqual([text, unreadable]);
  }
  respond = () =>
    new Response(Bun.gzipSync(encoder.encode("[]")), { headers: { "content-encoding": "gzip" } });
  expect(await why(first, requests)).toBe(unreadable);

  respond = () => new Response(endless(encoder.encode(" ".repeat(1 << 20))));
  expect(await why(first, requests)).toBe("its response is larger than 8 MiB");

  const sized = (bytes: number) => `[${" ".repeat(bytes - 2)}]`;
  respond = () => new Response(sized(8 << 20));
  expect(await why(first, requests)).toBeUndefined();
  respond = () => new Response(sized((8 << 20) + 1));
  expect(await why(first, requests)).toBe("its response is larger than 8 MiB");

  const silent = new ReadableStream({ start: (body) => body.enqueue(encoder.encode("[")) });
  respond = () => new Response(silent);
  expect(await why(first, "requests?node=n2")).toBe("it did not respond within 1 s");

  respond = () => new Response(endless(encoder.encode("data: x".repeat(100_000))));
  const stream = await openEvents(`${first.admin}/api/v1/requests/stream?node=n2`);
  cleanups.push(() => stream.close());
  await eventually(() =>
    stream.events.some(
      ({ data }) => data.missing?.[0]?.why === "it sent an event of more than 1 MiB",
    ),
  );
  respond = () =>
    new Response(
      'event: request\ndata: [1]\n\nevent: audit\ndata: {}\n\nevent: request\ndata: {"node":"x"}\n\n',
    );
  await eventually(() => stream.events.some(({ kind }) => kind === "request"));
  expect(stream.events.filter(({ kind }) => kind !== "nodes")[0]).toMatchObject({
    kind: "request",
    data: { node: "n2" },
  });

  // What it was sent is for the second node alone, and not for changes.
  received.length = 0;
  respond = () => new Response("[]");
  await first.ok("GET", `/api/v1/${requests}`);
  const { token = "", target = "" } =
    received.find(({ target }) => !target.includes("stream")) ?? {};
  const replay = async (node: Gateway, method = "GET") =>
    (await node.api(method, target, undefined, { [NODE_TOKEN_HEADER]: token })).status;
  expect(await replay(first)).toBe(401);
  expect(await replay(second, "DELETE")).toBe(401);
  expect(await replay(second)).toBe(200);
  expect(await replay(second)).toBe(401);
});

test("a node without an address is named", async () => {
  const fleet = await pair([]);
  expect(await why(fleet.nodes[0] as Gateway, "requests?node=all")).toBe(
    "its address is not known: start it with --advertise and its URL",
  );
});

/** Files of a self-signed certificate. */
async function certificateFiles() {
  const pair = await selfSigned("node.test");
  const directory = mkdtempSync(join(tmpdir(), "sluice-peer-"));
  cleanups.push(() => rmSync(directory, { recursive: true }));
  const files = { cert: join(directory, "cert.pem"), key: join(directory, "key.pem") };
  writeFileSync(files.cert, pair.cert);
  writeFileSync(files.key, pair.key, { mode: 0o600 });
  return { ...files, pair };
}

test("a self-signed certificate is accepted when it is the one of the node's signed row, and no other", async () => {
  const { cert, key } = await certificateFiles();
  const admin = `127.0.0.1:${quietPort()}`;
  const tls = ["--admin-tls-cert", cert, "--admin-tls-key", key];
  const fleet = await pair(["--admin", admin, ...tls, "--advertise", `https://${admin}`]);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  expect(await why(first, "requests?node=n2")).toBeUndefined();
  const [, shown] = await first.ok("GET", "/api/v1/nodes");
  expect(shown).toMatchObject({ name: "n2", url: `https://${admin}` });
  await second.kill9();
  let received = 0;
  const other = await certificateFiles();
  const impostor = Bun.serve({
    hostname: "127.0.0.1",
    port: Number(admin.split(":")[1]),
    tls: other.pair,
    fetch() {
      received++;
      return Response.json([]);
    },
  });
  cleanups.push(() => impostor.stop(true));
  expect(await why(first, "requests?node=n2")).toMatch(
    /presents a certificate that is not trusted/,
  );
  expect(received).toBe(0);
});

test("a certificate that is not the node's own must be trusted by the machine", async () => {
  const { pair: tls } = await certificateFiles();
  let received = 0;
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls,
    fetch() {
      received++;
      return Response.json([]);
    },
  });
  cleanups.push(() => proxy.stop(true));
  const fleet = await pair(["--advertise", `https://127.0.0.1:${proxy.port}`]);
  expect(await why(fleet.nodes[0] as Gateway, "requests?node=n2")).toMatch(
    /presents a certificate that is not trusted/,
  );
  expect(received).toBe(0);
});

test("users see of other nodes what their role sees of this one", async () => {
  const admin = `127.0.0.1:${quietPort()}`;
  const fleet = await pair(["--admin", admin, "--advertise", `http://${admin}`]);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const made = await first.ok("POST", "/api/v1/tokens", { name: "viewer", role: "viewer" });
  const authorization = `Bearer ${made.token}`;
  const password = "correct horse battery";
  await first.ok("POST", "/api/v1/users", {
    ...{ email: "a@a.example", name: "a", role: "admin", password },
  });
  const statusOf = async (path: string, headers = {}) =>
    (await first.api("GET", `/api/v1/${path}`, undefined, headers)).status;
  for (const path of ["requests?node=all", "stats?node=n2"]) {
    expect(await statusOf(path)).toBe(401);
    const response = await first.api("GET", `/api/v1/${path}`, undefined, { authorization });
    expect(await response.json()).toMatchObject({ partial: false });
  }
  expect(await statusOf("events?node=n2&kinds=audit", { authorization })).toBe(403);
  // A token of a node has the role of its user, which the other node checks as well.
  const ids = await fleet.query((sql) => sql`select id, name from sluice.node order by name`);
  const [{ id: own }, { id: node }] = ids as [{ id: string }, { id: string }];
  const key = new SecretBox(Buffer.from(fleet.secret, "base64")).derive("fleet node tokens");
  const tokens = new NodeTokens({ key: () => key, id: own, now: () => Date.now() });
  const open = async (role: "viewer" | "admin") => {
    const path = "/api/v1/events?kinds=audit";
    const token = tokens.sign({ node, path, role });
    const events = await openEvents(`${second.admin}${path}`, { [NODE_TOKEN_HEADER]: token });
    events.close();
    return events.status;
  };
  expect([await open("viewer"), await open("admin")]).toEqual([403, 200]);
});

needs("executable", "postgres", fakeTime).test(
  "a node whose clock is off by minutes reads and is read",
  async () => {
    const node = (name: string) => {
      const admin = `127.0.0.1:${quietPort()}`;
      const args = ["--admin", admin, "--advertise", `http://${admin}`];
      return { args, ...(name === "n2" ? { env: clockOff(-300) } : {}) };
    };
    const fleet = await TestFleet.start(2, { node });
    cleanups.push(() => fleet.stop());
    const [first, second] = fleet.nodes as [Gateway, Gateway];
    for (const [reader, other] of [
      [first, "n2"],
      [second, "n1"],
    ] as const) {
      await eventually(
        async () => (await reader.api("GET", `/api/v1/requests?node=${other}`)).status === 200,
      );
      expect(await why(reader, `requests?node=${other}`)).toBeUndefined();
    }
  },
  60_000,
);

test("an address that a token must not be sent to is refused at the start", async () => {
  const start = async (advertise: string) => {
    const words = ["--store", "postgres://s@127.0.0.1:1/s", "--advertise", advertise];
    const { code, stderr } = await runCommand(["serve", ...words], { binary: executable });
    return `${code} ${stderr}`;
  };
  for (const url of [
    "http://203.0.113.7:9080",
    "http://gateway.example",
    "ftp://10.0.0.1",
    "10.0.0.1",
  ])
    expect(await start(url)).toMatch(
      /^2 .*--advertise: must be an https URL, or an http URL with a private address/s,
    );
  for (const url of [
    "https://gateway.example/sluice",
    "http://10.0.0.1:9080/?a",
    "https://a.example/#b",
  ])
    expect(await start(url)).toMatch(/^2 .*--advertise: must end after the host and port/s);
});
