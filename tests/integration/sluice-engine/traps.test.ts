// The traps of Bun's sockets, from source and compiled: each on a bare socket, and its absence on the one that our engine uses.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scenes } from "./trap-scenes.ts";

const source = join(import.meta.dir, "trap-scenes.ts");
const directory = mkdtempSync(join(tmpdir(), "sluice-traps-"));
const executable = join(directory, "traps");
afterAll(() => rmSync(directory, { recursive: true }));

/** Runs a command to its end. */
async function run(command: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([...command], {
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...env },
  });
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

describe.each([
  { name: "from source", program: [process.execPath, source], isCompiled: false },
  { name: "compiled", program: [executable], isCompiled: true },
])("$name:", ({ program, isCompiled }) => {
  const results = new Map<string, unknown>();
  beforeAll(async () => {
    if (isCompiled)
      await run([process.execPath, "build", "--compile", source, "--outfile", executable]);
    const lines = await run(program, { TRAP_PROGRAM: JSON.stringify(program) });
    for (const line of lines.trimEnd().split("\n")) {
      const { name, ...seen } = JSON.parse(line);
      results.set(name, seen);
    }
  });

  test.each(scenes.map(({ trap, name, expected }) => [trap, name, expected] as const))(
    "trap %d: %s",
    (_, name, expected) => {
      expect(results.get(name)).toEqual({ result: expected });
    },
  );
});

test("each of the nine has a scene, and what Bun does not document has some", () => {
  expect([...new Set(scenes.map(({ trap }) => trap))].toSorted((a, b) => a - b)).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  ]);
});
