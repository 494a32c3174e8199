// Caddyfiles as home labs have them, converted by a real Caddy through the CLI: no host is lost, and nothing is opened. Needs caddy.
import { expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missingHosts } from "../support/caddy-hosts.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs, pathOf } from "../support/needs.ts";
import { convertWith } from "../unit/import/samples.ts";

const { afterAll, beforeAll, describe, test } = needs("caddy");

const fixtures = join(import.meta.dir, "../fixtures/import/caddy");
const files = readdirSync(fixtures).filter((name) => name.endsWith(".Caddyfile"));

const adapted = (path: string): string => {
  const { status, stdout, stderr } = spawnSync(pathOf("caddy") ?? "caddy", [
    ...["adapt", "--config", path, "--adapter", "caddyfile"],
  ]);
  if (status !== 0) throw new Error(stderr.toString());
  return stdout.toString();
};

describe("hosts", () => {
  test("there are at least 15 Caddyfiles", () => expect(files.length).toBeGreaterThan(14));

  test.each(files)("none of %s is lost, and the report has no position in JSON", async (name) => {
    const text = adapted(join(fixtures, name));
    const { document, report } = await convertWith("caddy", text);
    expect(missingHosts(JSON.parse(text), { document, report })).toEqual([]);
    const positions = report.filter(({ what }) =>
      /\b(?:routes|handle|match)\[\d+\]|^apps\./.test(what),
    );
    expect(positions).toEqual([]);
  });
});

describe("the CLI", () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-caddyfile-"));
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({ workers: 1 });
    mkdirSync(join(directory, "sites"));
    writeFileSync(
      join(directory, "Caddyfile"),
      "import sites/*\n{$EXTRA:none.test} {\n\treverse_proxy app:81\n}\n",
    );
    writeFileSync(join(directory, "sites/a"), "a.test {\n\treverse_proxy app:80\n}\n");
    writeFileSync(join(directory, "broken"), "a.test {\n\tno_such_directive\n}\n");
  });
  afterAll(async () => {
    await gateway?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const run = (path: string, env: Record<string, string> = {}) =>
    runCommand(["import", path, "--from", "caddy", "--dry-run", "--details"], {
      env: { SLUICE_URL: gateway.admin, ...env },
    });

  test("runs Caddy in the folder of the Caddyfile, with its environment", async () => {
    const { code, stdout } = await run(join(directory, "Caddyfile"), { EXTRA: "b.test" });
    expect(code).toBe(0);
    expect(stdout).toContain('+ route "a.test"');
    expect(stdout).toContain('+ route "b.test"');
  });

  test("shows Caddy's error", async () => {
    const { code, stderr } = await run(join(directory, "broken"));
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("unrecognized directive: no_such_directive"),
    ]);
  });

  test("without Caddy it says what to run", async () => {
    const { code, stderr } = await run(join(directory, "Caddyfile"), { PATH: directory });
    expect([code, stderr]).toEqual([1, expect.stringContaining("run `caddy adapt --config")]);
  });

  test("the API runs nothing, and says what to run", async () => {
    const answer = await fetch(`${gateway.admin}/api/v1/import?from=caddy`, {
      method: "POST",
      body: "a.test {\n\treverse_proxy app:80\n}\n",
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("run `caddy adapt --config Caddyfile > caddy.json`");
  });
});
