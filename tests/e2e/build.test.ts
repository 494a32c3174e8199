// The executable as a file: self-contained, and independent of the files in its working directory.
import { expect } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { cleanupsOf } from "../support/cleanups.ts";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable");

const cleanups = cleanupsOf(afterEach);
const checkout = resolve(import.meta.dir, "../..");

function scratchDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-build-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("it is one file that every user may run, within its size limit", () => {
  const { mode, size } = statSync(executable);
  expect(mode & 0o111).toBe(0o111);
  expect(size).toBeLessThan(130_000_000);
});

test("it does not read Bun's configuration files beside it", async () => {
  const cwd = scratchDirectory();
  writeFileSync(join(cwd, ".env"), "SLUICE_LOG_LEVEL=nonsense\nSLUICE_WORKERS=0\n");
  writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
  writeFileSync(join(cwd, "preload.ts"), "process.exit(7);\n");
  writeFileSync(join(cwd, "package.json"), "not JSON");
  writeFileSync(join(cwd, "tsconfig.json"), "not JSON");
  const dataDir = join(cwd, "data");
  mkdirSync(dataDir);
  const wrapper = join(cwd, "start");
  writeFileSync(wrapper, `#!/bin/sh\ncd "${cwd}" && exec "${executable}" "$@"\n`, { mode: 0o755 });
  const gateway = await startGateway({ binary: wrapper, dataDir });
  cleanups.push(() => gateway.stop());
  expect((await gateway.api("GET", "/docs/scalar.js")).status).toBe(200);
});

test("an empty environment is enough", async () => {
  const child = Bun.spawn([executable, "help"], { cwd: "/", env: {}, stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toContain("Usage: sluice COMMAND");
  expect(await child.exited).toBe(0);
});

needs("executable", "private mounts").test(
  "it needs no file of the checkout it was built in",
  async () => {
    const cwd = scratchDirectory();
    const copy = join(cwd, "sluice");
    copyFileSync(executable, copy);
    const wrapper = join(cwd, "start");
    const words = `mount -t tmpfs none "${checkout}" && exec "$@"`;
    writeFileSync(
      wrapper,
      `#!/bin/sh\nexec unshare --map-root-user --mount sh -c '${words}' sh "${copy}" "$@"\n`,
      { mode: 0o755 },
    );
    const gateway = await startGateway({ binary: wrapper });
    cleanups.push(() => gateway.stop());
    expect((await gateway.ok("POST", "/api/v1/services", { name: "any" })).name).toBe("any");
    for (const path of ["/docs", "/docs/scalar.js", "/openapi.yaml", "/readyz"]) {
      const response = await gateway.api("GET", path);
      expect([path, response.status]).toEqual([path, 200]);
      expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(0);
    }
  },
);
