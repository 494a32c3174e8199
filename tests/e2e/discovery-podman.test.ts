// A real Podman: its API is listed and followed, only running containers count, and its end and return are noticed.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs, pathOf } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "podman");

const directory = mkdtempSync(join(tmpdir(), "sluice-podman-"));
const socket = join(directory, "podman.sock");
const places = ["--root", join(directory, "store"), "--runroot", join(directory, "run")];
const podman = [
  pathOf("podman") ?? "podman",
  ...places,
  "--storage-driver=vfs",
  "--cgroup-manager=cgroupfs",
  "--events-backend=file",
];

let gateway: Gateway;
let service: Bun.Subprocess;

const serve = () =>
  Bun.spawn([...podman, "system", "service", "--time=0", `unix://${socket}`], {
    stdout: "ignore",
    stderr: "ignore",
  });

async function run(...words: string[]): Promise<void> {
  const { exited, stderr } = Bun.spawn([...podman, ...words], { stdout: "ignore", stderr: "pipe" });
  if ((await exited) !== 0) throw new Error(await new Response(stderr).text());
}

beforeAll(async () => {
  service = serve();
  gateway = await startGateway({ binary: executable });
});
afterAll(async () => {
  await gateway?.stop();
  service?.kill("SIGKILL");
  await service?.exited;
  rmSync(directory, { recursive: true, force: true });
});

const source = async () => (await gateway.ok("GET", "/api/v1/discovery"))[0];
const isConnected = () => eventually(async () => (await source()).state === "connected");

test("is followed, and a container that does not run is no target", async () => {
  const rules = { endpoint: `unix://${socket}` };
  await gateway.ok("PATCH", "/api/v1/settings", { discovery: { docker: rules } });
  await isConnected();
  const { looked_at: before } = await source();
  const empty = Bun.spawn([
    "tar",
    "-c",
    "--files-from",
    "/dev/null",
    "-f",
    join(directory, "empty.tar"),
  ]);
  expect(await empty.exited).toBe(0);
  await run("import", join(directory, "empty.tar"), "sluice-test");
  const labels = ["--label", "sluice.enable=true", "--label", "sluice.host=p.test"];
  await run("create", "--name", "created", "--network", "host", ...labels, "sluice-test", "/run");
  // The event of the new container is a reason to look.
  await eventually(async () => (await source()).looked_at !== before);
  expect(await source()).toMatchObject({ found: 0, sites: [], problem: null });
});

test("that ends is noticed, and followed again when it is back", async () => {
  service.kill("SIGKILL");
  await service.exited;
  await eventually(async () => (await source()).state === "failed");
  service = serve();
  await isConnected();
});
