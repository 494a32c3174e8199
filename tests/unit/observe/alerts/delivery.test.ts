// Delivery of messages: order, attempts, limits and shutdown; and which events of the gateway raise alerts.
import { describe, expect, test } from "bun:test";
import { type Notice, oneLine, testNotice } from "../../../../src/observe/alerts/notice.ts";
import { DeliveryError, Outbox } from "../../../../src/observe/alerts/outbox.ts";
import { endOfUnwatched, signalOf } from "../../../../src/observe/alerts/sources.ts";
import { emptyConfiguration } from "../../../../src/store/first-configuration.ts";
import { eventually } from "../../../support/poll.ts";

const at = "2026-01-01T00:00:00.000Z";
const notice = (title: string): Notice => ({ ...testNotice(at), title });

function scene(send: (title: string, signal: AbortSignal) => Promise<unknown>, pauses = [1, 1]) {
  const lost: string[] = [];
  const outbox = new Outbox({
    send: ({ title }, signal) => send(title, signal),
    done: () => {},
    lost: ({ title }, reason) => lost.push(`${title}: ${reason}`),
    now: () => Date.parse(at),
    pauses,
  });
  return { outbox, lost };
}

describe("messages", () => {
  test("are sent in order, each after the one before is delivered or dropped", async () => {
    const tried: string[] = [];
    const { outbox, lost } = scene((title) => {
      tried.push(title);
      return title === "b" ? Promise.reject(new DeliveryError("no")) : Promise.resolve();
    });
    for (const title of ["a", "b", "c"]) outbox.put(notice(title));
    await eventually(() => outbox.status.waiting === 0);
    expect(tried).toEqual(["a", "b", "b", "b", "c"]);
    expect(lost).toEqual(["b: no"]);
    expect(outbox.status).toEqual({ waiting: 0, lost: 1, last_sent_at: at, last_error: null });
  });

  test("that cannot be delivered are bounded: the oldest are dropped, except the one in flight", async () => {
    const { outbox, lost } = scene(() => new Promise(() => undefined));
    for (let n = 0; n < 150; n++) outbox.put(notice(String(n)));
    expect(outbox.status).toMatchObject({ waiting: 100, lost: 50 });
    expect([lost[0], lost.at(-1)]).toEqual(["1: the queue is full", "50: the queue is full"]);
  });

  test("report no error that could contain a secret, and stop at once on shutdown", async () => {
    let aborted = false;
    const { outbox } = scene(
      async (title, signal) => {
        signal.addEventListener("abort", () => (aborted = true));
        if (title === "a") throw new Error("https://secret@x/");
      },
      [60_000],
    );
    outbox.put(notice("a"));
    await eventually(() => outbox.status.last_error === "unexpected error");
    outbox.stop();
    await eventually(() => aborted);
    expect(outbox.status.waiting).toBe(0);
  });

  test("have a title of one line", () => {
    expect(oneLine("a\r\nBcc: x\x00y")).toBe("a Bcc: x y");
  });
});

const config = emptyConfiguration(at);

describe("an event", () => {
  const order = {
    at,
    id: "c",
    name: "shop",
    domains: ["shop.test"],
    attempts: 2,
    last_error: "the authority refuses the name",
    next_attempt_at: at,
  };
  const certificate = { at, id: "c", name: "shop", domains: ["shop.test"], not_after: at };
  const worker = { at, worker: 2, revision: 1, restarts: 3, why: "Error: secret" };
  const node = { at, node_id: "1", name: "n1", why: "secret" };
  const memory = { at, what: "memory", limit: 10_000_000 };
  test.each([
    [
      "acme",
      { ...order, status: "failed" },
      "order c begun",
      'Certificate "shop" cannot be issued',
    ],
    ["acme", { ...order, status: "valid" }, "order c over", 'Certificate "shop" was issued'],
    ["acme", { ...order, status: "ordering" }, null, ""],
    ["certificate", { ...certificate, what: "expiring" }, "expiry c begun", "expires soon"],
    ["certificate", { ...certificate, what: "expired" }, "expiry c begun", "has expired"],
    ["certificate", { ...certificate, what: "renewed" }, "expiry c over", "was renewed"],
    ["certificate", { ...certificate, what: "revoked" }, null, ""],
    ["worker", { ...worker, event: "died" }, "worker 2 begun", "Worker 2 ended unexpectedly"],
    ["worker", { ...worker, event: "ready" }, "worker 2 over", "Worker 2 serves again"],
    ["worker", { ...worker, event: "restarted" }, null, ""],
    ["overload", { ...memory, state: "begun" }, "overload memory begun", "Memory is short"],
    ["overload", { ...memory, state: "over" }, "overload memory over", "enough memory again"],
    [
      "overload",
      { ...memory, what: "descriptors", state: "begun" },
      "overload descriptors begun",
      "Files and sockets are short",
    ],
    ["node", { ...node, event: "cut_off" }, "node 1 begun", "Node n1 of the fleet is cut off"],
    ["node", { ...node, event: "diverged" }, "node 1 begun", "is diverged"],
    ["node", { ...node, event: "back" }, "node 1 over", "is in order again"],
    ["node", { ...node, name: "n2", event: "away" }, "away 1 begun", "n2 of the fleet is away"],
    // It says so itself.
    ["node", { ...node, name: "n2", event: "refused" }, "away 1 over", "is in order again"],
    ["node", { ...node, name: "n2", event: "left" }, "away 1 over", "has left"],
  ] as const)("%s %o is %p", (kind, payload, key, title) => {
    const signal = signalOf(kind, payload, { config, node: "n1" });
    expect(signal === null ? null : `${signal.key} ${signal.state}`).toBe(key);
    expect(signal?.title ?? "").toContain(title);
    // Only admins see why a worker ended.
    expect(JSON.stringify(signal)).not.toContain("secret");
  });

  test("about a certificate ends when the certificate is deleted or replaced", () => {
    const signal = signalOf("certificate", { ...certificate, what: "expiring" }, { config });
    if (signal === null) throw new Error("no signal");
    const having = (not_after: string, enabled = true) =>
      ({
        ...config,
        certificates: new Map([["c", { id: "c", not_after, enabled }]]),
      }) as unknown as typeof config;
    expect(endOfUnwatched(signal, having(at))).toBeNull();
    expect(endOfUnwatched(signal, having("2027-01-01T00:00:00Z"))?.title).toContain("was replaced");
    expect(endOfUnwatched(signal, having(at, false))?.message).toContain("deleted or disabled");
    expect(endOfUnwatched(signal, config)?.state).toBe("over");
  });
});
