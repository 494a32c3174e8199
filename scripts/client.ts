// Writes the package @sluice/client into dist/client: types from the description of the API, and the client in scripts/client.
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import project from "../package.json";
import { apiTypes } from "./api-description.ts";

const folder = resolve(import.meta.dir, "../dist/client");
const sources = resolve(import.meta.dir, "client");
const { version, license, devDependencies } = project;

const manifest = {
  name: "@sluice/client",
  version,
  description: "Typed client of the management API of Sluice",
  license,
  type: "module",
  exports: { ".": { types: "./index.d.ts", default: "./index.js" } },
  files: ["index.js", "index.d.ts", "schema.d.ts"],
  dependencies: { "openapi-fetch": devDependencies["openapi-fetch"] },
};

rmSync(folder, { recursive: true, force: true });
for (const name of ["index.js", "index.d.ts", "README.md"])
  await Bun.write(`${folder}/${name}`, Bun.file(`${sources}/${name}`));
await Bun.write(`${folder}/LICENSE`, Bun.file(resolve(import.meta.dir, "../LICENSE")));
await Bun.write(
  `${folder}/schema.d.ts`,
  `// The management API of Sluice ${version}; generated, do not edit.\n${await apiTypes()}`,
);
await Bun.write(`${folder}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
