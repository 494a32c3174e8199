// ACME challenges served by a real worker pool: before routes, in every worker, also in a replaced one.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { createSelfSigned } from "../../../src/crypto/x509.ts";
import { createLog } from "../../../src/log.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { WorkerBoard } from "../../../src/shared-memory/worker-board.ts";
import type { Challenges } from "../../../src/snapshot/message.ts";
import { WorkerPool } from "../../../src/supervisor/worker-pool.ts";
import { selfSigned } from "../../support/certificate.ts";
import { freePort } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { compiled, configOf, listener, route } from "../../unit/control/fixture.ts";
import { ask } from "../listeners/world.ts";

const WORKERS = 2;
const nothing: Challenges = { http: [], tls: [] };

let pool: WorkerPool;
let httpPort: number;
let httpsPort: number;
/** Of a listener with our own engine. */
let ownPort: number;
const wanted: string[] = [];

beforeEach(async () => {
  [httpPort, httpsPort, ownPort] = [freePort(), freePort(), freePort()];
  wanted.length = 0;
  const { snapshot } = compiled(
    configOf({
      listeners: [
        listener("http", { address: "127.0.0.1", port: httpPort }),
        listener("https", { address: "127.0.0.1", port: httpsPort, protocol: "https" }),
        listener("own", {
          address: "127.0.0.1",
          port: ownPort,
          protocol: "https",
          engine: "sluice",
        }),
      ],
      routes: [route("closed", { maintenance: { html: "closed" } })],
    }),
  );
  const tls = await selfSigned("default.test");
  const listeners = new Map(
    [...snapshot.listeners].map(([id, plan]) => [
      id,
      plan.listener.protocol === "https" ? { ...plan, tls } : plan,
    ]),
  );
  pool = new WorkerPool({
    url: new URL("../../../src/worker.ts", import.meta.url),
    workers: WORKERS,
    instanceId: "test",
    stickyKey: "test",
    dnsServers: [],
    board: WorkerBoard.create(WORKERS),
    targets: TargetBoard.create(WORKERS),
    onUnknownName: (name) => void wanted.push(name),
    log: createLog({ level: "error", format: "json", sink() {} }),
    snapshot: { ...snapshot, listeners },
  });
  expect(await pool.start()).toEqual([]);
});
afterEach(async () => {
  await pool?.drain(100);
});

/** Responses on separate connections, so that every worker gets some. */
async function fetched(path: string, method = "GET", times = 20): Promise<string[]> {
  const url = `http://127.0.0.1:${httpPort}${path}`;
  const answers = await Promise.all(
    Array.from({ length: times }, async () => {
      const answer = await fetch(url, { method, keepalive: false });
      return `${answer.status} ${await answer.text()}`;
    }),
  );
  return [...new Set(answers)];
}

const PATH = "/.well-known/acme-challenge/";

test("every worker serves the token before maintenance, and nothing else", async () => {
  expect(await fetched(`${PATH}token`)).toEqual(["503 closed"]);
  await pool.showChallenges({ http: [{ token: "token", answer: "token.print" }], tls: [] });
  expect(await fetched(`${PATH}token`)).toEqual(["200 token.print"]);
  expect(await fetched(`${PATH}token`, "HEAD")).toEqual(["200 "]);
  expect(await fetched(`${PATH}token`, "POST", 4)).toEqual(["503 closed"]);
  for (const path of [`${PATH}other`, PATH, `${PATH}token/`, "/token"])
    expect(await fetched(path, "GET", 4)).toEqual(["503 closed"]);
  await pool.showChallenges(nothing);
  expect(await fetched(`${PATH}token`)).toEqual(["503 closed"]);
});

test("a replacement worker serves it too", async () => {
  await pool.showChallenges({ http: [{ token: "token", answer: "token.print" }], tls: [] });
  for (const slot of pool.slots) {
    slot.replace("test");
    expect(await slot.becomesReady(10_000)).toBe(true);
    expect(await fetched(`${PATH}token`)).toEqual(["200 token.print"]);
  }
});

/** A certificate of proved.test. */
const provedBy = (proof?: Uint8Array) =>
  createSelfSigned({
    ...{ names: ["proved.test"], addresses: [], validDays: 1, now: Date.now() },
    ...(proof === undefined ? {} : { proof }),
  });

test("acme-tls/1 gets the challenge certificate, other protocols the usual one", async () => {
  const pair = await provedBy(new Uint8Array(32));
  await pool.showChallenges({ http: [], tls: [{ name: "proved.test", ...pair }] });
  const authority = { servername: "proved.test", ALPNProtocols: ["acme-tls/1"] };
  for (let time = 0; time < 10; time++) {
    const answer = await ask(httpsPort, authority, "x");
    expect(answer).toMatchObject({ certificate: "proved.test", protocol: "acme-tls/1", text: "" });
    const client = await ask(httpsPort, { servername: "proved.test" });
    expect(client.certificate).toBe("default.test");
    expect(client.text).toContain("503");
    const other = await ask(httpsPort, { servername: "a.test", ALPNProtocols: ["http/1.1"] });
    expect(other.certificate ?? other.error).toBe("default.test");
  }
  await pool.showChallenges(nothing);
  const after = await ask(httpsPort, { servername: "proved.test" });
  expect(after).toMatchObject({ certificate: "default.test" });
});

test("on our own engine, whose connections stay open meanwhile", async () => {
  const pair = await provedBy(new Uint8Array(32));
  const session = connect(`https://127.0.0.1:${ownPort}`, { rejectUnauthorized: false });
  let goAways = 0;
  session.on("goaway", () => goAways++);
  await new Promise((resolve) => session.once("connect", resolve));
  await pool.showChallenges({ http: [], tls: [{ name: "proved.test", ...pair }] });
  const authority = { servername: "proved.test", ALPNProtocols: ["acme-tls/1"] };
  for (let time = 0; time < 10; time++) {
    const answer = await ask(ownPort, authority, "x");
    expect(answer).toMatchObject({ certificate: "proved.test", protocol: "acme-tls/1", text: "" });
    const client = await ask(ownPort, { servername: "proved.test", ALPNProtocols: ["h2"] }, "x");
    expect(client).toMatchObject({ certificate: "default.test", protocol: "h2" });
  }
  await pool.showChallenges(nothing);
  const stream = session.request({ ":path": "/" });
  const headers = await new Promise<IncomingHttpHeaders>((resolve) => {
    stream.on("response", resolve);
  });
  stream.resume();
  expect(Number(headers[":status"])).toBe(503);
  expect(goAways).toBe(0);
  session.close();
});

test("in-flight requests complete while a socket of ours takes the place of Bun.serve", async () => {
  const pair = await provedBy();
  let isOver = false;
  const texts: string[] = [];
  const clients = Array.from({ length: 4 }, async () => {
    while (!isOver) texts.push((await ask(httpsPort, { servername: "a.test" })).text.slice(0, 12));
  });
  for (let round = 0; round < 5; round++) {
    await pool.showChallenges({ http: [], tls: [{ name: "proved.test", ...pair }] });
    await pool.showChallenges(nothing);
  }
  isOver = true;
  await Promise.all(clients);
  // Connections in the accept queue of a closing socket may be reset where the system does not migrate them.
  const failed = texts.filter((text) => text !== "HTTP/1.1 503");
  expect(failed.length).toBeLessThanOrEqual(10 * WORKERS);
  expect(texts.length).toBeGreaterThan(failed.length);
});

test("handshakes for requested names are reported once, and no others", async () => {
  await pool.showChallenges({ ...nothing, wanted: ["*.wanted.test", "exact.test"] });
  for (const servername of ["a.wanted.test", "exact.test", "a.b.wanted.test", "wanted.test"])
    for (let time = 0; time < 8; time++) await ask(httpsPort, { servername });
  await eventually(() => wanted.includes("exact.test"));
  expect(new Set(wanted)).toEqual(new Set(["a.wanted.test", "exact.test"]));
  expect(wanted.length).toBeLessThanOrEqual(2 * WORKERS);
});
