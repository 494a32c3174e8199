// How the benchmark parses the reports of wrk and h2load, and which verdict it derives from them.
import { describe, expect, test } from "bun:test";

import { parseH2load, parseWrk, percentile } from "../bench/load.ts";
import { type Measurement, medianRatio } from "../bench/measure.ts";
import { CUTS } from "../bench/observation.ts";
import { parseOptions } from "../bench/options.ts";
import { ownPluginsToText, rowOf } from "../bench/own-plugins.ts";
import { replaceSection } from "../bench/page.ts";
import { judge, judgeManyTargets } from "../bench/targets.ts";

const WRK = `Running 1s test @ http://127.0.0.1:1/64B
  1 threads and 48 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.30ms  541.00us  12.62ms   90.11%
  Latency Distribution
     50%  812.00us
     75%    1.42ms
     90%    1.80ms
     99%    1.02s
  32193 requests in 1.00s, 9.12MB read
`;

describe("a report of wrk", () => {
  test("is read with its units", () => {
    const result = parseWrk(`${WRK}Requests/sec:  32180.55\nTransfer/sec:      9.11MB\n`);
    expect(result).toEqual({
      requests: 32_193,
      requestsPerSecond: 32_180.55,
      p50Ms: 0.812,
      p99Ms: 1_020,
      errors: 0,
    });
  });

  test("counts refused requests and broken connections as errors", () => {
    const printed = `${WRK}  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:  32180.55
`;
    expect(parseWrk(printed).errors).toBe(15);
  });

  test("that cannot be parsed is an error", () => {
    expect(() => parseWrk("unable to connect to 127.0.0.1:1")).toThrow("no result");
  });
});

describe("a report of h2load", () => {
  const summary = (protocol: string) => `Application protocol: ${protocol}

finished in 2.00s, 150.00 req/s, 1.20MB/s
requests: 300 total, 300 started, 300 done, 299 succeeded, 1 failed, 1 errored, 0 timeout
status codes: 299 2xx, 0 3xx, 0 4xx, 1 5xx
`;
  const log = "1700\t200\t1000\n1701\t200\t3000\n1702\t-1\t90000\n1703\t200\t2000\n";

  test("is read together with its log", () => {
    expect(parseH2load(summary("h2"), log, "h2")).toEqual({
      requests: 299,
      requestsPerSecond: 149.5,
      p50Ms: 2,
      p99Ms: 3,
      errors: 1,
    });
  });

  test("of another protocol is an error", () => {
    expect(() => parseH2load(summary("http/1.1"), log, "h2")).toThrow("HTTP/2 was not negotiated");
    expect(parseH2load(summary("http/1.1"), log, "tls").requests).toBe(299);
  });

  test("that cannot be parsed is an error", () => {
    expect(() => parseH2load("", "", "http")).toThrow("no result");
  });
});

test("the 99th percentile of a hundred values is the highest of them", () => {
  const values = Array.from({ length: 100 }, (_, index) => index + 1);
  expect([percentile(values, 0.5), percentile(values, 0.99), percentile([], 0.5)]).toEqual([
    51,
    100,
    Number.NaN,
  ]);
});

describe("a target", () => {
  const measurement = (proxy: Measurement["proxy"], cpu: number, errors = 0): Measurement => ({
    proxy,
    protocol: "http",
    size: "64B",
    requests: 1,
    requestsPerSecond: 1,
    p50Ms: 1,
    p99Ms: 1,
    cpuUsPerRequest: cpu,
    faultsPerRequest: 0,
    loadedBytes: 1,
    errors,
    rounds: [{ cpuUsPerRequest: cpu, p99Ms: 1 }],
  });

  test.each([
    { why: "at the limit", sluice: measurement("sluice", 11), verdict: "reached" },
    { why: "over the limit", sluice: measurement("sluice", 11.2), verdict: "missed" },
    { why: "fast but wrong", sluice: measurement("sluice", 1, 1), verdict: "not measured" },
  ])("gets a verdict: $why", ({ sluice, verdict }) => {
    expect(judge([measurement("nginx", 10), sluice])[0]?.verdict).toBe(verdict as "reached");
  });

  test.each([
    { ratio: 1.05, errors: 0, verdict: "reached" },
    { ratio: 1.06, errors: 0, verdict: "missed" },
    { ratio: 0.9, errors: 1, verdict: "missed" },
  ])("several targets cost $ratio with $errors errors: $verdict", ({ ratio, errors, verdict }) => {
    expect(judgeManyTargets({ ratio, errors }).verdict).toBe(verdict as "reached");
  });

  test("for heads that vary is a fifth above that for equal ones", () => {
    const verdicts = [13.2, 13.3].map((cpu) => {
      const [nginx, own] = [measurement("nginx", 10), measurement("sluice", cpu)];
      const varied = [nginx, own].map((one) => ({ ...one, protocol: "varied" as const }));
      return judge(varied).find(({ target }) => /CPU.*64B.*varied/.test(target));
    });
    expect(verdicts.map((one) => one?.atMost)).toEqual(["1.32x", "1.32x"]);
    expect(verdicts.map((one) => one?.verdict)).toEqual(["reached", "missed"]);
  });

  test("is compared by the median of the rounds in which both ran", () => {
    const rounds = (...costs: readonly number[]) =>
      costs.map((cpuUsPerRequest) => ({ cpuUsPerRequest, p99Ms: 1 }));
    const ours = { ...measurement("sluice", 0), rounds: rounds(12, 24, 90) };
    const theirs = { ...measurement("bare", 0), rounds: rounds(10, 20, 30) };
    expect(medianRatio(ours, theirs)).toBe(1.2);
  });

  test("without a figure is not reported as reached", () => {
    expect(judgeManyTargets(null).verdict).toBe("not measured");
    expect(judge([measurement("nginx", 10)])[0]?.verdict).toBe("not measured");
  });
});

describe("the page", () => {
  test("keeps the other section when one is replaced", () => {
    const first = replaceSection("", { name: "scale", text: "old scale" });
    const second = replaceSection(first, { name: "comparison", text: "comparison" });
    const third = replaceSection(second, { name: "scale", text: "new scale" });
    expect(third).toContain("comparison\n\n<!-- /comparison -->\n\n<!-- scale -->\n\nnew scale");
    expect(third).not.toContain("old scale");
  });
});

describe("the command line", () => {
  test("writes the page after a full run only", () => {
    const outs = [[], ["--quick"], ["--sizes", "64B"], ["--quick", "--out", "x.md"]].map((argv) => {
      const options = parseOptions(argv);
      return options === "help" ? "help" : options.out;
    });
    expect(outs).toEqual(["docs/benchmarks.md", undefined, undefined, "x.md"]);
  });

  test("lists its arguments", () => {
    expect(() => parseOptions(["--proxies", "apache"])).toThrow(
      '"apache" is not one of nginx, nginx-64k, haproxy, caddy, bare, before, sluice',
    );
  });
});

test("the code that the benchmark removes to turn off counting exists in the source", async () => {
  for (const { file, text } of CUTS) expect(await Bun.file(file).text()).toContain(text);
});

describe("plugins from a directory", () => {
  const turn = (builtIn: number, again: number, directory: number, errors = 0) => ({
    costs: new Map([
      ["built-in", builtIn],
      ["again", again],
      ["directory", directory],
    ] as const),
    errors,
  });
  const wordsOf = (...turns: Parameters<typeof rowOf>[1]) => {
    const row = rowOf({ plugin: "own", place: "one process" }, turns);
    return ownPluginsToText([row]).split("\n").at(-1)?.split(/ {2,}/);
  };

  test("are compared within each turn, so that a machine that gets slower changes nothing", () => {
    const turns = [turn(10, 10, 10.1), turn(20, 20, 20.2), turn(40, 44, 40.4)];
    const spreads = ["1.000x (1.000 to 1.100)", "1.010x (1.010 to 1.010)"];
    expect(wordsOf(...turns)).toEqual([
      "own",
      "one process",
      "20.0",
      ...spreads,
      "1.02x",
      "reached",
    ]);
  });

  test("miss the target beyond it, and have no verdict with errors", () => {
    expect(wordsOf(turn(10, 10, 10.3))?.at(-1)).toBe("missed");
    expect(wordsOf(turn(10, 10, 10, 1))?.at(-1)).toBe("1 errors");
  });
});
