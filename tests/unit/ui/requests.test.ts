// The parts of the page of requests that need no browser: sampling, commands for a shell, phases, words.
import { describe, expect, test } from "bun:test";
import { phasesOf } from "../../../src/ui/pages/requests/phase-bar.tsx";
import { toCurl } from "../../../src/ui/pages/requests/request-curl.ts";
import { explainReason } from "../../../src/ui/pages/requests/request-reasons.ts";
import {
  MAX_ROWS,
  type RequestRow,
  RequestTail,
  ROWS_PER_SECOND,
} from "../../../src/ui/pages/requests/request-tail.ts";

const request = (index: number, fields: Partial<RequestRow> = {}): RequestRow =>
  ({
    id: `r${index}`,
    kind: "http",
    time: new Date(index * 1000).toISOString(),
    status: 200,
    method: "GET",
    scheme: "https",
    host: "shop.test",
    path: "/a",
    user_agent: null,
    ...fields,
  }) as RequestRow;

describe("the tail", () => {
  test("shows all requests at a low rate, the newest first", () => {
    const tail = new RequestTail();
    for (let index = 0; index < 10; index++) tail.push(request(index), index * 100);
    const view = tail.view(1000, false);
    expect(view.rows.map(({ id }) => id)).toEqual(
      [9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map((index) => `r${index}`),
    );
    expect([view.seen, view.sampledOut, view.share]).toEqual([10, 0, 1]);
  });

  test("samples at a high rate, and counts all requests by status", () => {
    const tail = new RequestTail();
    for (let index = 0; index < 10_000; index++)
      tail.push(request(index, { status: index % 10 === 0 ? 502 : 200 }), index);
    const view = tail.view(10_000, false);
    expect([view.seen, view.byClass["2xx"], view.byClass["5xx"]]).toEqual([10_000, 9000, 1000]);
    expect(view.rows.length).toBe(MAX_ROWS);
    expect(10_000 - view.sampledOut).toBeLessThanOrEqual(11 * ROWS_PER_SECOND);
    expect(view.share).toBeLessThan(0.06);
    expect(view.perSecond).toBeGreaterThan(900);
  });

  test("keeps its rows while paused, and queues the others", () => {
    const tail = new RequestTail();
    tail.push(request(1), 1000);
    expect(tail.view(1000, false).rows.length).toBe(1);
    tail.push(request(2), 2000);
    const held = tail.view(2000, true);
    expect([held.rows.length, held.waiting, held.seen]).toEqual([1, 1, 2]);
    expect(tail.view(2000, false).rows.map(({ id }) => id)).toEqual(["r2", "r1"]);
  });

  test("shows a request once that both the list and the stream return", () => {
    const tail = new RequestTail();
    tail.merge([request(2), request(1)]);
    tail.push(request(2), 1000);
    tail.push(request(3), 1000);
    tail.merge([request(3), request(2)]);
    const view = tail.view(1000, false);
    expect(view.rows.map(({ id }) => id)).toEqual(["r3", "r2", "r1"]);
    expect(view.seen).toBe(2);
  });
});

describe("a request as a command", () => {
  test.each([
    { why: "plain", fields: {}, command: "curl https://shop.test/a" },
    {
      why: "a method and a masked secret",
      fields: { method: "POST", path: "/a?token=***" },
      command: "curl --request POST 'https://shop.test/a?token=***'",
    },
    { why: "a head", fields: { method: "HEAD" }, command: "curl --head https://shop.test/a" },
    {
      why: "what would end the quotes",
      fields: { user_agent: "it's; rm -rf ~" },
      command: `curl --user-agent 'it'\\''s; rm -rf ~' https://shop.test/a`,
    },
  ])("$why", ({ fields, command }) => {
    expect(toCurl(request(1, fields))).toBe(command);
  });

  test("has the port of the listener, unless the host has one", () => {
    expect(toCurl(request(1, {}), 8443)).toBe("curl https://shop.test:8443/a");
    expect(toCurl(request(1, { host: "shop.test:1" }), 8443)).toBe("curl https://shop.test:1/a");
  });

  test("does not exist for a stream", () => {
    expect(toCurl(request(1, { kind: "stream", method: null }))).toBeNull();
  });
});

test("phases add up to the total", () => {
  const timings = { queue: null, plugins: 2, connect: 3, first_byte: 10, total: 12 };
  const phases = phasesOf({ timings, attempts: 1 });
  expect(phases.map(({ ms }) => ms)).toEqual([2, 3, 5, 2]);
  const waited = phasesOf({ timings: { ...timings, queue: 1.5 }, attempts: 1 });
  expect(waited.map(({ ms }) => ms)).toEqual([1.5, 0.5, 3, 5, 2]);
  const late = { queue: 9, plugins: null, connect: null, first_byte: null, total: 10 };
  expect(phasesOf({ timings: late, attempts: 0 }).map(({ ms }) => ms)).toEqual([9, 1]);
});

test.each([
  ["connection_refused", null],
  ["ip.denied", "ip-restriction"],
  ["auth.jwt.something", "jwt"],
  ["waf.942100", "waf-lite"],
  ["crowdsec.ban", "crowdsec"],
  ["blocklist.listed.spamhaus-drop", "blocklist"],
  ["my-script.error", "my-script"],
  ["constructor", null],
])("%s is a word of %p", (word, plugin) => {
  expect(explainReason(word).plugin).toBe(plugin);
});

test("the reason of a block list names the list", () => {
  expect(explainReason("blocklist.listed.spamhaus-drop").text).toContain("spamhaus-drop");
});
