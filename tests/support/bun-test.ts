// Runs `bun test` over files in a folder of their own, with the preload of this project; the files end with it.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { outputOf } from "./child-output.ts";
import { eventually } from "./poll.ts";

const root = resolve(import.meta.dir, "../..");

interface BunTestOptions {
  readonly words?: readonly string[];
  readonly env?: Record<string, string>;
  /** Kills the process once it exists. */
  readonly killAt?: string;
}

/** `files`: their texts by name, without `.test.ts`; ROOT in them stands for the folder of this project. */
export async function bunTest(
  files: Readonly<Record<string, string>>,
  { words = [], env = {}, killAt }: BunTestOptions = {},
): Promise<{ code: number; text: string }> {
  const cwd = mkdtempSync(join(tmpdir(), "sluice-bun-test-"));
  const settings = Bun.TOML.parse(readFileSync(join(root, "bunfig.toml"), "utf8")) as {
    test: { preload: string[] };
    run: { noOrphans: boolean };
  };
  const preload = settings.test.preload.map((path) => JSON.stringify(join(root, path)));
  writeFileSync(
    join(cwd, "bunfig.toml"),
    `[run]\nnoOrphans = ${settings.run.noOrphans}\n[test]\nroot = "."\npreload = [${preload}]\n`,
  );
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(cwd, `${name}.test.ts`), text.replaceAll("ROOT", root));
  const child = Bun.spawn([process.execPath, "test", ...words], {
    cwd,
    env: { PATH: "/nonexistent", HOME: cwd, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  if (killAt !== undefined) {
    await eventually(() => existsSync(killAt));
    child.kill("SIGKILL");
  }
  const { code, stdout, stderr } = await outputOf(child);
  rmSync(cwd, { recursive: true, force: true });
  return { code, text: stdout + stderr };
}
