// Whatever clients and targets send, the log of the whole product stays one line of JSON for each event, without bytes that drive a terminal.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testedEngine } from "../../support/engines.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";

let gateway: Gateway;
let origin: Origin;
beforeAll(async () => {
  origin = startOrigin();
  gateway = await startGateway({ args: ["--log-level", "debug"] });
  await gateway.ok("POST", "/api/v1/services", {
    name: "s",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "r", service_id: "s" });
  // Bun.serve knows no paths as they came.
  if (testedEngine === "bun") return;
  const raw = { name: "raw", service_id: "s", hosts: ["raw.test"], path_handling: "raw" };
  await gateway.ok("POST", "/api/v1/routes", raw);
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

const FORGED = '{"time":"2026-01-01T00:00:00.000Z","level":"error","message":"forged"}';

/** Lines of the log that were written since the mark. */
const linesSince = (mark: number) => gateway.stderr.slice(mark).split("\n").slice(0, -1);

function expectClean(lines: readonly string[]): void {
  for (const line of lines) {
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    const event = JSON.parse(line) as { message: string; level: string };
    expect(event.message).not.toBe("forged");
    expect(["debug", "info", "warn", "error"]).toContain(event.level);
  }
}

const hosts = testedEngine === "bun" ? ["h"] : ["h", "raw.test"];

const hostile: [what: string, line: string, fields: string][] = [
  ["line ends in the path", `/%0d%0a${encodeURIComponent(FORGED)}`, ""],
  ["line ends in the query", `/?a=%0a${encodeURIComponent(FORGED)}`, ""],
  ["an escape sequence in the path", "/%1b[31m%1b]0;title%07", ""],
  ["C1 controls in the path", "/\xc2\x9b31m\x9b", ""],
  ["line separators in the path", "/\xe2\x80\xa8\xe2\x80\xa9", ""],
  ["quotes and braces in the path", `/"},{"message":"forged"`, ""],
  ["a backslash at the end", "/x\\", ""],
  ["a format string", "/%25s%25n$(id)`id`$%7bjndi:ldap://x%7d", ""],
  ["bidirectional overrides", "/\xe2\x80\xae", ""],
  ["C1 controls in the user agent", "/", "User-Agent: \x9b31m\xc2\x9b31m\r\n"],
  ["UTF-8 in the user agent", "/", "User-Agent: \xe2\x80\xa8forged\r\n"],
  ["JSON in the user agent", "/", `User-Agent: ","message":"forged\r\n`],
  ["tabs in fields", "/", "X-A: a\tb\r\nReferer: \t\r\n"],
  ["a long path", `/${"%0a".repeat(2000)}`, ""],
];

describe("requests that fail and are logged", () => {
  test.each(hosts.flatMap((host) => hostile.map((each) => [host, ...each] as const)))(
    "for %s, %s: one line, clean",
    async (host, _, target, fields) => {
      origin.answer = "nonsense\r\n\r\n";
      const mark = gateway.stderr.length;
      const bytes = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`;
      const { outcome } = await exchange(bytes, { port: gateway.httpPort });
      expect(["400", "502"]).toContain(outcome);
      await eventually(() => linesSince(mark).some((line) => line.includes("request failed")));
      const lines = linesSince(mark);
      expectClean(lines);
      expect(lines.filter((line) => line.includes('"message":"request failed"')).length).toBe(1);
    },
  );

  test("an invalid Host, an unknown one and a bare control character", async () => {
    const mark = gateway.stderr.length;
    for (const host of [
      `a"b\x9b`,
      "\xe2\x80\xa8",
      `x,${FORGED}`,
      "a\tb",
      "a\x1b[31mb",
      "a\nforged",
    ]) {
      const { outcome } = await exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, {
        port: gateway.httpPort,
      });
      expect(outcome).toBe("400");
    }
    // One that is served behind them, so that their lines are there.
    origin.answer = "nonsense\r\n\r\n";
    await exchange("GET /last HTTP/1.1\r\nHost: h\r\n\r\n", { port: gateway.httpPort });
    await eventually(() => gateway.stderr.slice(mark).includes("/last"));
    expectClean(linesSince(mark));
  });

  test("a target's own words, quoted in the cause", async () => {
    for (const answer of [
      "HTTP/1.1 200 OK\r\nX\x9b31m: y\r\n\r\n",
      `HTTP/1.1 200 OK\r\nX-A: a\rb\x1b[31m\nforged\r\n\r\n`,
      `HTTP/1.1 200 \x1b[31m\r\nContent-Length: ${FORGED}\r\n\r\n`,
      "\x1b[31m\xe2\x80\xa8\r\n\r\n",
    ]) {
      origin.answer = answer;
      const mark = gateway.stderr.length;
      const { outcome, received } = await exchange("GET /t HTTP/1.1\r\nHost: h\r\n\r\n", {
        port: gateway.httpPort,
      });
      expect(outcome).toBe("502");
      expect(received).not.toMatch(/forged|\x1b|\x9b/);
      await eventually(() => gateway.stderr.slice(mark).includes("request failed"));
      expectClean(linesSince(mark));
    }
  });
});

test("the whole log of this file is clean", () => {
  expectClean(linesSince(0));
});
