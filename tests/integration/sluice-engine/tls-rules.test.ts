// TLS rules by name at one port of our own engine: client certificates and versions of a host fail closed, whatever name the handshake had.
import { beforeAll, describe, expect, test } from "bun:test";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { Authority, type Leaf } from "../../support/authority.ts";
import { freePort } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { usePeople } from "../listeners/people.ts";
import { ask, GET, mirrored, useListeners } from "../listeners/world.ts";

const { api } = useListeners();
const people = usePeople(api);

const port = freePort();
/** Of the other CA. */
let other: Authority;
let bob: Leaf;
const shared = { engine: "sluice", protocol: "https", address: "127.0.0.1", port };

beforeAll(async () => {
  other = await Authority.create("Others of the port");
  bob = await other.sign({ names: ["bob"] });
  const requires = (ca: string) => ({ client_auth: "require", client_ca: ca });
  await api.create("/listeners", { name: "open", hosts: ["a.test"], ...shared });
  await api.create("/listeners", {
    name: "alices",
    hosts: ["b.test"],
    ...shared,
    ...requires(people.root.cert),
  });
  await api.create("/listeners", {
    name: "bobs",
    hosts: ["c.test"],
    ...shared,
    ...requires(other.cert),
  });
  await api.create("/listeners", {
    name: "newest",
    hosts: ["d.test"],
    ...shared,
    tls_min_version: "1.3",
  });
});

const to = (host: string) => GET.replace("a.test", host);
const shown = (leaf: Leaf | null) => (leaf === null ? {} : { cert: leaf.cert, key: leaf.key });
const alice = () => people.good;

describe("a request is served only after the handshake that its host asks for:", () => {
  test.each([
    ["a.test", null, "a.test", "200", "no certificate is asked"],
    ["b.test", alice, "b.test", "200", "the certificate of its CA"],
    ["c.test", () => bob, "c.test", "200", "the certificate of its CA"],
    [undefined, null, "a.test", "200", "no name, and no rule"],
    [undefined, null, "b.test", "421", "no name: no certificate was asked"],
    [undefined, alice, "b.test", "421", "no name: the certificate was not asked"],
    ["a.test", null, "b.test", "421", "another name"],
    ["a.test", alice, "b.test", "421", "another name, whose handshake asked nothing"],
    ["b.test", null, "b.test", "", "no certificate"],
    ["b.test", () => bob, "b.test", "", "a certificate of another CA"],
    ["c.test", alice, "c.test", "", "a certificate of another CA"],
    ["b.test", alice, "c.test", "421", "verified for another name"],
    ["b.test", alice, "a.test", "421", "its target would take the certificate for one of its own"],
    ["unknown.test", null, "b.test", "421", "a name of no listener"],
    ["b.test", () => people.expired, "b.test", "", "expired"],
  ] as const)(
    "name %s, certificate %p, host %s: %p, %s",
    async (servername, leaf, host, status) => {
      for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
        const over = { minVersion: version, maxVersion: version, servername: servername ?? "" };
        const { text } = await ask(port, { ...over, ...shown(leaf?.() ?? null) }, to(host));
        expect(text.slice(9, 12)).toBe(status);
        if (status !== "200") continue;
        expect("client-cert" in mirrored(text)).toBe(leaf !== null);
      }
    },
  );

  test.each([
    ["d.test", "TLSv1.3", "200"],
    ["d.test", "TLSv1.2", ""],
    ["", "TLSv1.3", "200"],
    ["", "TLSv1.2", "421"],
    ["a.test", "TLSv1.2", "421"],
  ] as const)("name %p over %s to a host with TLS 1.3: %p", async (servername, version, status) => {
    const { text } = await ask(port, { servername, maxVersion: version }, to("d.test"));
    expect(text.slice(9, 12)).toBe(status);
  });
});

/** A connection that stays, and what has come back on it. */
function keep(options: ConnectionOptions) {
  const socket: TLSSocket = connect({
    host: "127.0.0.1",
    port,
    rejectUnauthorized: false,
    ...options,
  });
  const seen = { socket, text: "", isClosed: false, sessions: [] as Buffer[] };
  socket.on("data", (data: Buffer) => {
    seen.text += data.toString("latin1");
  });
  socket.on("session", (session: Buffer) => seen.sessions.push(session));
  socket.on("close", () => {
    seen.isClosed = true;
  });
  socket.on("error", () => {});
  return seen;
}

const request = (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const answers = ({ text }: { readonly text: string }) => text.match(/HTTP\/1\.1 \d{3}/g) ?? [];

test("no session resumes a handshake that asked for a certificate, nor one that did not", async () => {
  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    const over = { minVersion: version, maxVersion: version };
    const open = keep({ ...over, servername: "a.test" });
    open.socket.write(request("a.test"));
    const session = await eventually(() => answers(open).length === 1 && open.sessions[0]);
    const asked = keep({ ...over, servername: "b.test", ...shown(alice()) });
    asked.socket.write(request("b.test"));
    await eventually(() => answers(asked).length === 1);
    // A session of 1.2 would be there without a ticket too.
    for (const resumed of [session, ...asked.sessions])
      for (const host of ["b.test", "c.test"]) {
        const { text } = await ask(
          port,
          { ...over, servername: host, session: resumed as Buffer },
          to(host),
        );
        expect(text).toBe("");
      }
    for (const { socket } of [open, asked]) socket.destroy();
  }
});

test("another CA holds at once: kept connections of the name end, those of other names go on", async () => {
  const kept = {
    "a.test": keep({ servername: "a.test" }),
    "b.test": keep({ servername: "b.test", ...shown(alice()) }),
    "c.test": keep({ servername: "c.test", ...shown(bob) }),
  };
  for (const [host, { socket }] of Object.entries(kept)) socket.write(request(host));
  await eventually(() => Object.values(kept).every((one) => answers(one).length === 1));
  const change = { client_ca: other.cert };
  expect((await api.call("PATCH /listeners/alices", { body: change })).status).toBe(200);
  await eventually(() => kept["b.test"].isClosed);
  expect(answers(kept["b.test"])).toEqual(["HTTP/1.1 200"]);
  expect((await ask(port, { servername: "b.test", ...shown(alice()) }, to("b.test"))).text).toBe(
    "",
  );
  const next = await ask(port, { servername: "b.test", ...shown(bob) }, to("b.test"));
  expect(next.text).toStartWith("HTTP/1.1 200");
  for (const host of ["a.test", "c.test"] as const) kept[host].socket.write(request(host));
  await eventually(
    () => answers(kept["a.test"]).length === 2 && answers(kept["c.test"]).length === 2,
  );
  for (const { socket } of Object.values(kept)) socket.destroy();
  await api.call("PATCH /listeners/alices", { body: { client_ca: people.root.cert } });
});

test("a rule that comes or goes holds at once, for connections without a certificate too", async () => {
  const open = keep({ servername: "a.test" });
  open.socket.write(request("a.test"));
  await eventually(() => answers(open).length === 1);
  const rule = { client_auth: "require", client_ca: people.root.cert };
  await api.call("PATCH /listeners/open", { body: rule });
  await eventually(() => open.isClosed);
  expect((await ask(port, { servername: "a.test" })).text).toBe("");
  expect((await ask(port, { servername: "" })).text).not.toContain(" 200 ");
  await api.call("PATCH /listeners/open", { body: { client_auth: "none" } });
  expect((await ask(port, { servername: "a.test" })).text).toStartWith("HTTP/1.1 200");
});

test("HTTP/3, where nobody can ask for a certificate, is refused beside such rules", async () => {
  for (const name of ["open", "alices"]) {
    const { status, body } = await api.call(`PATCH /listeners/${name}`, { body: { http3: true } });
    expect([status, String(body.error)]).toEqual([
      expect.any(Number),
      expect.stringContaining("http3"),
    ]);
    expect(status).toBeOneOf([400, 409]);
  }
});
