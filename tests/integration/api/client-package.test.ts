// The package that `make client` writes: its types refuse mistakes, and it works against a gateway.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const root = resolve(import.meta.dir, "../../..");
/** Inside the checkout, where the packages are that it depends on. */
const project = join(root, `dist/client-test-${process.pid}`);

const PROGRAM = `
import { type components, createClient } from "@sluice/client";

const client = createClient({ url: Bun.env["GATEWAY"] ?? "", token: Bun.env["TOKEN"] ?? "" });
const created = await client.POST("/api/v1/services", {
  body: { name: "web", targets: [{ host: "127.0.0.1", port: 9 }] },
});
if (created.error) throw new Error(created.error.error);
const service: components["schemas"]["Service"] = created.data;
const params = { path: { id: service.name } };
const found = await client.GET("/api/v1/services/{id}", { params });
const refused = await client.PUT("/api/v1/services/{id}", { params, body: { name: "" } });
const preview = await client.DELETE("/api/v1/services/{id}", {
  params: { ...params, query: { dry_run: "1" } },
});
console.log(
  JSON.stringify([
    found.data?.algorithm,
    refused.response.status,
    refused.error?.error,
    preview.data?.deleted,
    preview.response.headers.get("x-dry-run"),
  ]),
);
`;

const MISTAKES = `
import { createClient } from "@sluice/client";

const client = createClient();
// @ts-expect-error: no such path
await client.GET("/api/v1/service");
// @ts-expect-error: not a value of the field
await client.POST("/api/v1/services", { body: { name: "web", algorithm: "fastest" } });
// @ts-expect-error: a needed field is missing
await client.POST("/api/v1/users", { body: { email: "a@example.com" } });
// @ts-expect-error: the path has a parameter
await client.GET("/api/v1/services/{id}");
`;

let gateway: Gateway;
let token = "";

async function run(...words: string[]) {
  const env = { ...process.env, GATEWAY: gateway.admin, TOKEN: token };
  const child = Bun.spawn(words, { cwd: project, env, stdout: "pipe", stderr: "pipe" });
  const output = await new Response(child.stdout).text();
  const errors = await new Response(child.stderr).text();
  return { code: await child.exited, output, errors };
}

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  token = (await gateway.ok("POST", "/api/v1/admin/token")).token;
  const user = { email: "a@a.example", name: "A", role: "admin", password: "correct horse b" };
  await gateway.ok("POST", "/api/v1/users", user);
  mkdirSync(join(project, "node_modules/@sluice"), { recursive: true });
  const made = await run(process.execPath, join(root, "scripts/client.ts"));
  expect([made.code, made.errors]).toEqual([0, ""]);
  symlinkSync(join(root, "dist/client"), join(project, "node_modules/@sluice/client"));
  await Bun.write(join(project, "program.ts"), PROGRAM);
  await Bun.write(join(project, "mistakes.ts"), MISTAKES);
  const compilerOptions = { extends: "../../tsconfig.json", include: ["*.ts"] };
  await Bun.write(join(project, "tsconfig.json"), JSON.stringify(compilerOptions));
});
afterAll(async () => {
  rmSync(project, { recursive: true, force: true });
  await gateway?.stop();
});

test("its types accept a program, and refuse wrong paths, values and parameters", async () => {
  expect(await run(process.execPath, "check", "-p", project)).toMatchObject({ code: 0 });
});

test("a program creates, reads and previews with a token", async () => {
  const { code, output, errors } = await run(process.execPath, "program.ts");
  expect([code, errors]).toEqual([0, ""]);
  expect(JSON.parse(output)).toEqual(["round_robin", 400, "name: must not be empty", true, "true"]);
});

test("it depends on nothing but openapi-fetch", async () => {
  const manifest = await Bun.file(join(root, "dist/client/package.json")).json();
  expect(Object.keys(manifest.dependencies)).toEqual(["openapi-fetch"]);
});
