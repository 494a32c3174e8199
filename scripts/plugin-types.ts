// Writes the npm package @sluice/plugin into dist/plugin-types: the types of the plugin kit for editors, and its page. The gateway has the code.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const target = process.argv[2] ?? join(root, "dist/plugin-types");

interface Package {
  readonly version: string;
  readonly license?: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const config = join(target, "tsconfig.json");
writeFileSync(
  config,
  JSON.stringify({
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: join(root, "src"),
      outDir: target,
      typeRoots: [join(root, "node_modules")],
    },
    include: [],
    files: [join(root, "src/pdk/index.ts")],
  }),
);
const compiler = join(root, "node_modules/typescript/bin/tsc");
const run = Bun.spawnSync([process.execPath, compiler, "-p", config]);
if (run.exitCode !== 0) throw new Error(run.stdout.toString());
rmSync(config);
cpSync(join(root, "src/cli/plugin-template/harness.txt"), join(target, "test.ts"));
cpSync(join(root, "docs/writing-a-plugin.md"), join(target, "README.md"));
const { version, license, dependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
) as Package;
const typebox = "@sinclair/typebox";
writeFileSync(
  join(target, "package.json"),
  `${JSON.stringify(
    {
      name: "@sluice/plugin",
      version,
      description: "Types of the plugin kit of Sluice",
      license,
      type: "module",
      exports: { ".": { types: "./pdk/index.d.ts" }, "./test": { types: "./test.ts" } },
      dependencies: { [typebox]: dependencies[typebox] },
    },
    null,
    2,
  )}\n`,
);
process.stdout.write(`${target}\n`);
