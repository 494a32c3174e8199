// A gateway that is kept in a file: what the commands print, what they change, and a gateway that follows its file.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";

const PASSPHRASE = "staple of the whole gateway";
const directory = mkdtempSync(join(tmpdir(), "sluice-files-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const site = `format: 1
services:
  - name: web
targets:
  - { service_id: web, host: 127.0.0.1, port: 9 }
routes:
  - name: shop
    service_id: web
    hosts: [shop.test]
`;

describe("the commands", () => {
  let gateway: Gateway | null = null;
  beforeAll(async () => {
    gateway = await startGateway({ workers: 1 });
  });
  afterAll(() => gateway?.stop());
  const run = (args: string[], options: Parameters<typeof runCommand>[1] = {}) =>
    runCommand(args, { ...options, env: { SLUICE_URL: gateway?.admin ?? "", ...options.env } });

  test("diff shows, apply does, and repeating it changes nothing", async () => {
    const path = file("site.yaml", site);
    const diff = await run(["diff", path]);
    expect([diff.code, diff.stdout, diff.stderr]).toEqual([
      0,
      '+ service "web"\n+ target "127.0.0.1:9"\n+ route "shop"\n3 created, 0 updated, 0 deleted\n',
      "",
    ]);
    expect((await run(["diff", path, "--exit-code"])).code).toBe(1);
    expect((await run(["apply", path])).stdout).toBe(diff.stdout);
    for (const command of ["diff", "apply"])
      expect((await run([command, path])).stdout).toBe("no changes\n");
    expect((await run(["diff", path, "--exit-code"])).code).toBe(0);
  });

  test("apply updates field by field, and deletes only with --prune", async () => {
    const path = file(
      "blog.yaml",
      "format: 1\nservices:\n  - name: web\n    path: /x\nroutes: []\n",
    );
    const merged = await run(["apply", path]);
    expect(merged.stdout).toBe(
      '~ service "web"\n    path: "" -> "/x"\n0 created, 1 updated, 0 deleted\n',
    );
    expect((await run(["diff", path, "--prune"])).stdout).toBe(
      '- route "shop"\n0 created, 0 updated, 1 deleted\n',
    );
    expect((await run(["apply", "-", "--prune"], { input: readFileSync(path, "utf8") })).code).toBe(
      0,
    );
    expect(await gateway?.ok("GET", "/api/v1/routes")).toEqual([]);
  });

  test("export writes what import reads, plain and encrypted", async () => {
    const plain = await run(["export"]);
    const again = await run(["import", file("plain.yaml", plain.stdout), "--mode", "replace"]);
    expect([again.code, again.stdout]).toEqual([0, "no changes\n"]);
    // A file that all users may read is replaced.
    const output = file("whole.json", "before");
    chmodSync(output, 0o644);
    const env = { SLUICE_PASSPHRASE: PASSPHRASE };
    const whole = await run(["export", "--secrets", "--format", "json", "--output", output], {
      env,
    });
    expect([whole.code, whole.stdout, whole.stderr]).toEqual([0, "", ""]);
    expect(JSON.parse(readFileSync(output, "utf8"))).toHaveProperty("encrypted");
    expect(statSync(output).mode & 0o777).toBe(0o600);
    expect(readdirSync(directory).filter((name) => name.endsWith(".part"))).toEqual([]);
    const link = join(directory, "link.json");
    symlinkSync(file("behind.json", ""), link);
    expect((await run(["export", "--format", "json", "--output", link])).code).toBe(0);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(join(directory, "behind.json"), "utf8")).format).toBe(1);
    const secret = file("passphrase", `${PASSPHRASE}\n`);
    const back = await run(["import", output, "--dry-run", "--passphrase-file", secret]);
    expect([back.code, back.stdout]).toEqual([0, "no changes\n"]);
  });

  test.each([
    ...["apply", "diff", "import", "check"].map((command) => ({
      args: [command, "/nowhere.yaml"],
      code: 1,
      says: "/nowhere.yaml: does not exist: check the path",
    })),
    {
      args: ["import", "--from", "kong", "/nowhere.yaml"],
      code: 1,
      says: "/nowhere.yaml: does not exist: check the path",
    },
    {
      args: ["export", "--output", "/nowhere/file.yaml"],
      code: 1,
      says: "/nowhere/file.yaml: its directory does not exist: create it",
    },
    {
      args: ["export", "--ca", "/nowhere.pem"],
      code: 1,
      says: "/nowhere.pem: does not exist: check the path",
    },
    {
      args: ["export", "--secrets", "--passphrase-file", "/nowhere.txt"],
      code: 1,
      says: "/nowhere.txt: does not exist: check the path",
    },
    {
      args: ["import", import.meta.dir],
      code: 1,
      says: "the files hold no configuration that can be imported",
    },
    {
      args: ["apply", "BROKEN"],
      code: 1,
      says: "routes[0].hosts: must be a list (line 4, column 5)",
    },
    {
      args: ["import", "BROKEN", "--from", "zoraxy"],
      code: 2,
      says: "--from: must be one of kong",
    },
    {
      args: ["import", "BROKEN", "--mode", "all"],
      code: 2,
      says: "--mode: must be merge or replace",
    },
    { args: ["import"], code: 2, says: "FILE is missing" },
    { args: ["apply", "BROKEN", "--output", "jsn"], code: 2, says: 'did you mean "json"?' },
    { args: ["export", "--format", "xml"], code: 2, says: "--format: must be yaml or json" },
    { args: ["export", "--secrets"], code: 1, says: "X-Passphrase: must be a passphrase" },
    {
      args: ["export", "--url", "http://127.0.0.1:1"],
      code: 1,
      says: "http://127.0.0.1:1 does not respond: nothing listens there; start the gateway",
    },
    {
      args: ["import", "BROKEN", "--passphrase-file", "/nonexistent"],
      code: 1,
      says: "/nonexistent: does not exist: check the path",
    },
    {
      args: ["export", "--ca", "/nonexistent"],
      code: 1,
      says: "/nonexistent: does not exist: check the path",
    },
    {
      args: ["plugin", "test", "other", "--plugins-dir", "/nonexistent"],
      code: 1,
      says: "/nonexistent/other: does not exist",
    },
    {
      args: ["plugin", "new", "mine", "--plugins-dir", "/proc/nonexistent"],
      code: 1,
      says: "/proc/nonexistent/mine: does not exist: check the path",
    },
    { args: ["export", "--url", "ftp://x"], code: 2, says: "--url: must be an http" },
  ])("$args ends with code $code", async ({ args, code, says }) => {
    const path = file("broken.yaml", "format: 1\nroutes:\n  - name: a\n    hosts: 5\n");
    const result = await run(args.map((word) => (word === "BROKEN" ? path : word)));
    expect([result.code, result.stdout]).toEqual([code, ""]);
    expect(result.stderr).toStartWith("sluice: ");
    expect(result.stderr).toContain(says);
  });

  test("check needs no gateway, and reports all errors", async () => {
    const right = await runCommand(["check", file("right.yaml", site)]);
    expect([right.code, right.stdout]).toEqual([
      0,
      `${join(directory, "right.yaml")} can be served: services 1, targets 1, routes 1\n`,
    ]);
    const masked = await runCommand(["check", file("masked.yaml", (await run(["export"])).stdout)]);
    expect(masked.code).toBe(0);
    const text = `${site}  - name: shop\n    service_id: nowhere\n`;
    const wrong = await runCommand(["check", file("wrong.yaml", text)]);
    expect([wrong.code, wrong.stdout]).toEqual([
      1,
      'routes[1].name: route "shop" exists already (line 10, column 5)\n' +
        'routes[1].service_id: service "nowhere" does not exist (line 11, column 5)\n',
    ]);
  });

  test("results are one JSON object on request", async () => {
    const path = file("json.yaml", site);
    const json = async (...args: string[]) =>
      JSON.parse((await run([...args, "--output", "json"])).stdout);
    expect(await json("diff", path)).toEqual({ changes: expect.any(Array) });
    expect(await json("import", path, "--dry-run")).toEqual({ changes: expect.any(Array) });
    const good = await runCommand(["check", path, "--output=json"]);
    expect([good.code, JSON.parse(good.stdout)]).toEqual([
      0,
      { problems: [], counts: { services: 1, targets: 1, routes: 1 } },
    ]);
    const bad = file("bad.yaml", "format: 1\nrouts: []\n");
    const wrong = await runCommand(["check", bad, "--output=json"]);
    expect([wrong.code, JSON.parse(wrong.stdout)]).toEqual([
      1,
      { problems: [expect.stringContaining("routs: is not a known field")], counts: {} },
    ]);
  });

  test("a token comes from the environment", async () => {
    const user = {
      email: "a@a.example",
      name: "A",
      role: "admin",
      password: "correct horse battery",
    };
    await gateway?.ok("POST", "/api/v1/users", user);
    const refused = await run(["export"]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      "sluice: authentication is required; set SLUICE_TOKEN to a valid token\n",
    ]);
    const made = await runCommand(["token", "--data-dir", gateway?.dataDir ?? ""]);
    expect((await run(["export"], { env: { SLUICE_TOKEN: made.stdout.trim() } })).code).toBe(0);
  });
});

describe("serve --config", () => {
  const port = quietPort();
  const withListener = (hosts: string) =>
    `${site.replace("shop.test", hosts)}listeners:\n  - name: main\n    address: 127.0.0.1\n    port: ${port}\n    protocol: http\n`;
  const path = join(directory, "followed.yaml");
  /** Replaced as a whole, as editors and Kubernetes do. */
  const replace = (text: string) => renameSync(file("next.yaml", text), path);
  let gateway: Gateway | null = null;
  const statusOf = async (host: string) =>
    (await fetch(`http://127.0.0.1:${port}/`, { headers: { host } })).status;

  beforeAll(async () => {
    replace(withListener("one.test"));
    gateway = await startGateway({ workers: 1, args: ["--config", path] });
  });
  afterAll(() => gateway?.stop());

  test("serves the file, on its listeners", async () => {
    expect(await statusOf("one.test")).toBe(502);
    expect(await statusOf("two.test")).toBe(404);
    expect(await gateway?.ok("GET", "/api/v1/listeners")).toMatchObject([{ name: "main" }]);
  });

  test.each([
    ["POST", "/services", { name: "x" }],
    ["PATCH", "/services/web", { path: "/x" }],
    ["DELETE", "/routes/shop", undefined],
    ["PUT", "/settings", {}],
    ["POST", "/import", { format: 1 }],
    ["POST", "/revisions/1/restore", undefined],
  ])("refuses %s %s to all other callers", async (method, target, body) => {
    const answer = await gateway?.api(method, `/api/v1${target}`, body);
    expect([answer?.status, await answer?.json()]).toEqual([
      409,
      { error: "configuration is read-only" },
    ]);
  });

  test("follows the file, ignores invalid versions, and continues with the next valid one", async () => {
    replace(withListener("two.test"));
    await eventually(async () => (await statusOf("two.test")) === 502);
    expect(await statusOf("one.test")).toBe(404);
    replace(`${withListener("three.test")}nonsense: 1\n`);
    const refusal = () =>
      gateway?.log.find(({ message }) => message === "the configuration file was not applied");
    await eventually(() => refusal() !== undefined);
    expect(refusal()).toMatchObject({
      level: "error",
      error: expect.stringContaining("nonsense: is not a known field (line"),
    });
    expect(await statusOf("two.test")).toBe(502);
    replace(withListener("four.test"));
    await eventually(async () => (await statusOf("four.test")) === 502);
  });

  test("does not start with a file that is invalid", async () => {
    const wrong = file("invalid.yaml", "format: 1\nroutes: 5\n");
    const start = startGateway({ workers: 1, args: ["--config", wrong] });
    expect(await start.then(() => "", String)).toContain(
      "routes: must be a list (line 2, column 1)",
    );
  });
});
