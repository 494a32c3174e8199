// The npm package @sluice/plugin: what `sluice plugin new` writes has no type errors with it.
import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { test } = needs("executable");

const root = join(import.meta.dir, "../..");

test("a new plugin and its test have no type errors, and a mistake has one", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-types-"));
  const run = async (...command: string[]) => {
    const child = Bun.spawn(command, { cwd: directory, stdout: "pipe", stderr: "pipe" });
    const text =
      (await new Response(child.stdout).text()) + (await new Response(child.stderr).text());
    return { code: await child.exited, text };
  };
  try {
    const types = join(directory, "node_modules/@sluice/plugin");
    await run(process.execPath, join(root, "scripts/plugin-types.ts"), types);
    for (const name of ["@sinclair", "bun-types", "@types"])
      symlinkSync(join(root, "node_modules", name), join(directory, "node_modules", name));
    const made = await run(executable, "plugin", "new", "greet", "--plugins-dir", ".");
    expect(made.code).toBe(0);
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: "esnext",
      module: "preserve",
      moduleResolution: "bundler",
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      types: ["bun-types"],
    };
    writeFileSync(
      join(directory, "tsconfig.json"),
      JSON.stringify({ compilerOptions, include: ["greet"] }),
    );
    const check = () => run(process.execPath, "check", "--no-pretty");
    const clean = await check();
    expect(clean.text).toContain("No type errors");
    mkdirSync(join(directory, "greet/more"));
    writeFileSync(
      join(directory, "greet/more/wrong.ts"),
      'import { reject } from "@sluice/plugin";\nexport default reject("403", "why", {});\n',
    );
    const wrong = await check();
    expect(wrong.text).toContain("greet/more/wrong.ts(2,23)");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
