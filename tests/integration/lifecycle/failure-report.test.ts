// What `bun test` prints of the gateways and seeds of a test that fails.
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunTest } from "../../support/bun-test.ts";
import { eventually } from "../../support/poll.ts";

const scene = `
  import { afterAll, beforeAll, expect, test } from "bun:test";
  import { startGateway } from "ROOT/tests/support/gateway.ts";
  import { seedOfRun } from "ROOT/tests/support/random.ts";
  let gateway;
  beforeAll(async () => { gateway = await startGateway({ workers: 1 }); });
  afterAll(() => gateway.stop());
  test("passes", async () => { seedOfRun(); await gateway.ok("GET", "/api/v1/services"); });
`;

const failing = `${scene}
  test("is wrong", async () => {
    await fetch(\`http://127.0.0.1:\${gateway.httpPort}/unrouted\`);
    for (let call = 0; call < 12; call++) await gateway.api("GET", \`/api/v1/lost-\${call}\`);
    expect(1).toBe(2);
  });
  test("dies", async () => { await gateway.kill9(); throw new Error("no"); });
`;

const hanging = `${scene}
  test("hangs", async () => {
    await gateway.ok("GET", "/api/v1/routes");
    await new Promise(() => {});
  }, 4000);
`;

const concurrent = `
  import { startGateway } from "ROOT/tests/support/gateway.ts";
  import { needs } from "ROOT/tests/support/needs.ts";
  const { test } = needs();
  for (const [name, milliseconds] of [["first", 10], ["second", 1500]])
    test.concurrent(name, async () => {
      const gateway = await startGateway({ workers: 1 });
      await gateway.api("GET", "/api/v1/" + name);
      await Bun.sleep(milliseconds);
      await gateway.stop();
      throw new Error(name);
    });
`;

const others = `
  import { beforeAll, describe, expect, test } from "bun:test";
  import { startGateway } from "ROOT/tests/support/gateway.ts";
  describe("a scene", () => {
    beforeAll(async () => {
      const gateway = await startGateway({ workers: 1 });
      await gateway.ok("GET", "/api/v1/no-scene");
    });
    test("is not run", () => {});
  });
`;

const bare = `
  import { expect, test } from "bun:test";
  test("adds", () => { expect(1 + 1).toBe(3); });
`;

const plane = `
  import { test } from "bun:test";
  import { startDataPlane } from "ROOT/tests/support/data-plane.ts";
  test("serves nothing", async () => {
    const plane = await startDataPlane({});
    plane.log.push({ level: "info", message: "a line", fields: {} });
    throw new Error("no");
  });
`;

const env = { PATH: process.env["PATH"] ?? "" };

/** Whether a process has this number, and is not another one by now. */
function isGateway(pid: number): boolean {
  const path = `/proc/${pid}/cmdline`;
  return existsSync(path) && readFileSync(path, "latin1").includes("\0serve\0");
}

/** The reports, by the names of the tests. */
const reportsIn = (text: string) =>
  new Map(
    [...text.matchAll(/^== report: "(.+?)" .+\n[\s\S]+?\n== end of report$/gm)].map(
      ([all, name = ""]) => [name, all] as const,
    ),
  );

describe.each([
  { mode: "one process", words: ["a", "b", "c", "d", "e", "f"] },
  { mode: "several processes", words: ["--parallel=2"] },
])("in $mode a failed test prints", ({ words }) => {
  let text = "";
  let reports = new Map<string, string>();
  beforeAll(async () => {
    const files = { a: failing, b: hanging, c: concurrent, d: others, e: bare, f: plane };
    ({ text } = await bunTest(files, { words, env: { ...env, SLUICE_TEST_SEED: "815" } }));
    reports = reportsIn(text);
  });

  test("each gateway that ran, with its program, version, process, log and requests", () => {
    const report = reports.get("is wrong") ?? text;
    expect(report).toMatch(/^gateway: .+ serve --data-dir /m);
    expect(report).toMatch(/^ {2}version \d+\.\d+\.\d+\S*, pid \d+, runs$/m);
    expect(report).toMatch(
      /^ {4}\{.+"message":"serving".+\n(?: {4}\{.+\n)* {4}\(the test begins\)$/m,
    );
    expect(report).toMatch(/^ {4}\{.+"path":"\/unrouted".+"reasons":\["destination_not_found"\]/m);
    expect([...report.matchAll(/lost-(\d+) 404 in/g)].map(([, call]) => Number(call))).toEqual([
      2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ]);
  });

  test("the seed of its random numbers", () => {
    expect(reports.get("is wrong")).toContain("repeat with SLUICE_TEST_SEED=815");
  });

  test("how a gateway ended", () => {
    expect(reports.get("dies")).toMatch(/pid \d+, ended: SIGKILL$/m);
  });

  test("what ran at its timeout", () => {
    const report = reports.get("hangs") ?? text;
    expect(report).toContain("GET /api/v1/routes 200");
    expect(report).toMatch(/, runs$/m);
  });

  test("no gateway of a test that runs at the same time", () => {
    for (const [name, other] of [
      ["first", "second"],
      ["second", "first"],
    ] as const) {
      expect(reports.get(name)).toContain(`/api/v1/${name} 404`);
      expect(reports.get(name)).not.toContain(`/api/v1/${other}`);
    }
  });

  test("the log of a data plane in its process", () => {
    expect(reports.get("serves nothing")).toMatch(/^data plane .+\n.+\n {4}\{.+"a line"/m);
  });

  test("what ran when a hook failed", () => {
    expect(reports.get("beforeAll")).toContain("/api/v1/no-scene 404");
  });

  test("and none of these gateways is there afterwards", () => {
    const pids = [...text.matchAll(/^ {2}.*, pid (\d+), /gm)].map(([, pid]) => Number(pid));
    expect(pids.length).toBeGreaterThan(4);
    expect(pids.filter(isGateway)).toEqual([]);
  });

  test("nothing else when it passes, or used no gateway", () => {
    expect([...reports.keys()].sort()).toEqual([
      "beforeAll",
      "dies",
      "first",
      "hangs",
      "is wrong",
      "second",
      "serves nothing",
    ]);
    expect(text).toContain("(pass) passes");
    expect(text).toContain("(fail) adds");
  });
});

test("a gateway ends with tests that are killed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-killed-"));
  const file = join(directory, "pid");
  const waiting = `
    import { test } from "bun:test";
    import { renameSync } from "node:fs";
    import { startGateway } from "ROOT/tests/support/gateway.ts";
    test("waits", async () => {
      const { pid } = await startGateway({ workers: 1 });
      await Bun.write("${file}.new", String(pid));
      renameSync("${file}.new", "${file}");
      await new Promise(() => {});
    });
  `;
  await bunTest({ a: waiting }, { words: ["a"], env, killAt: file });
  await eventually(() => !isGateway(Number(readFileSync(file, "utf8"))));
  rmSync(directory, { recursive: true });
});
