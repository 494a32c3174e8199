// The README's examples, in the order in which they stand, by the programs that it names.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { onPorts, shellBlocks } from "../../scripts/first-minute.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "curl", "python3");
const root = resolve(import.meta.dir, "../..");
const directory = mkdtempSync(join(tmpdir(), "sluice-readme-"));
const servers: Bun.Subprocess[] = [];
const NEXT = "--- next block ---";
let readme = "";
let gateway: Gateway;
let ports: ReadonlyMap<number, number>;

beforeAll(async () => {
  readme = await Bun.file(join(root, "README.md")).text();
  gateway = await startGateway({ binary: executable });
  ports = new Map([
    [9080, Number(new URL(gateway.admin).port)],
    [8080, gateway.httpPort],
    [8443, gateway.httpsPort],
    [3000, quietPort()],
    [3001, quietPort()],
  ]);
});
afterAll(async () => {
  for (const server of servers) server.kill();
  await gateway?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Output of each block, all in one shell as in one terminal; upstreams in terminals of their own. */
async function runBlocks(heading: string): Promise<readonly string[]> {
  const blocks = shellBlocks(readme, heading).filter((block) => block !== "make run");
  const commands = blocks.map((block) => onPorts(block, ports));
  for (const command of commands.filter((each) => each.startsWith("python3"))) {
    const words = command.split(" ");
    servers.push(Bun.spawn(words, { cwd: directory, stdout: "ignore", stderr: "ignore" }));
    await eventually(() =>
      fetch(`http://127.0.0.1:${words[3]}`).then(
        () => true,
        () => false,
      ),
    );
  }
  const curls = commands.filter((each) => !each.startsWith("python3"));
  const child = Bun.spawn(["bash", "-uc", curls.join(`\necho '${NEXT}'\n`)], {
    cwd: directory,
    stdout: "pipe",
    stderr: "ignore",
  });
  return (await new Response(child.stdout).text()).split(`${NEXT}\n`);
}

const statuses = (output: string) =>
  [...output.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);

test("the quick start works in its order, and takes away what it made", async () => {
  const listOf = (collection: string) => gateway.ok("GET", `/api/v1/${collection}`);
  const [created, served, key, requests, dry, balanced, deleted, ...rest] =
    await runBlocks("Quick start");
  expect(rest).toEqual([]);
  expect(created?.match(/"name":"hello"/g)).toHaveLength(2);
  expect(statuses(served ?? "")).toEqual(["200"]);
  expect(statuses(key ?? "")).toEqual(["401", "200"]);
  expect(requests).toContain('"auth.key.missing"');
  expect(dry).toContain('"/api"');
  expect(balanced?.match(/200$/gm)).toHaveLength(4);
  expect(deleted).toBe('{"deleted":true}{"deleted":true}');
  for (const collection of ["services", "routes", "plugins", "consumers"])
    expect(await listOf(collection)).toEqual([]);
});

test("the first user enables authentication, and a token replaces the password", async () => {
  const [created, listed] = await runBlocks("Enabling authentication");
  expect(created).toContain('"role":"admin"');
  expect(statuses(listed ?? "").at(-1)).toBe("200");
  expect((await gateway.api("GET", "/api/v1/services")).status).toBe(401);
});

test("the picture of the first minute shows the README's commands", async () => {
  const picture = await Bun.file(join(root, "docs/images/first-minute.svg")).text();
  for (const line of shellBlocks(readme, "Quick start")
    .filter((block) => block.startsWith("curl"))
    .slice(0, 2)
    .flatMap((block) => block.split("\n")))
    expect(picture).toContain(line.trim());
  expect(picture).toContain("HTTP/1.1 200 OK");
});
