// A command that takes long says so on a terminal, and nowhere else.
import { afterAll, expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "../../support/needs.ts";
import { program } from "../../support/gateway.ts";

const { test } = needs("script");
const scratch = mkdtempSync(join(tmpdir(), "sluice-progress-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("an import on a terminal says how long it has taken so far", async () => {
  const answer = Promise.withResolvers<void>();
  // A gateway that answers when the line is there.
  using gateway = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch() {
      await answer.promise;
      return Response.json({ error: "slow" }, { status: 503 });
    },
  });
  const file = join(scratch, "own.yaml");
  writeFileSync(file, "format: 1\n");
  const command = [...program(), "import", file, "--url", gateway.url.origin].join(" ");
  const child = Bun.spawn(["script", "-qec", command, "/dev/null"], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let shown = "";
  for await (const bytes of child.stdout) {
    shown += new TextDecoder().decode(bytes);
    if (shown.includes("so far")) answer.resolve();
  }
  expect(await child.exited).not.toBe(0);
  expect(shown).toMatch(/^sluice: .*own\.yaml: \d+ s so far\r\n/);
});
