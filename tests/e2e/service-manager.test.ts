// The notifications for systemd, received from a real datagram socket: start, signs of life, handover, end.
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServiceManager } from "../../src/supervisor/service-manager.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { runCommand, startGateway } from "../support/gateway.ts";
import { needs, pathOf } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "python3", "linux");

const cleanups = cleanupsOf(afterEach);

/** Prints what arrives, one notification on a line. */
const RECEIVER = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
receiver.bind("\\0" + name[1:] if name[0] == "@" else name)
print("bound", flush=True)
while True:
    print(receiver.recv(4096).decode().replace("\\n", " "), flush=True)
`;

interface Receiver {
  readonly name: string;
  readonly received: () => readonly string[];
}

async function receive(kind: "path" | "abstract"): Promise<Receiver> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-notify-"));
  const name = kind === "path" ? join(folder, "notify") : `@sluice-${Bun.randomUUIDv7()}`;
  const output = join(folder, "output");
  const child = Bun.spawn([pathOf("python3") ?? "", "-c", RECEIVER, name], {
    stdio: ["ignore", Bun.file(output), "inherit"],
  });
  cleanups.push(async () => {
    child.kill("SIGKILL");
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  });
  const lines = () => readFileSync(output, "utf8").split("\n").slice(0, -1);
  await eventually(() => lines().includes("bound"));
  return { name, received: () => lines().slice(1) };
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

test.each(["path", "abstract"] as const)(
  "arrive at a socket with a name of the kind %s",
  async (kind) => {
    const { name, received } = await receive(kind);
    const service = ServiceManager.open({ NOTIFY_SOCKET: name });
    expect(service.notify("MAINPID=7", "READY=1")).toBe(true);
    await eventually(() => received().length > 0);
    expect(received()).toEqual(["MAINPID=7 READY=1"]);
  },
);

test.each([undefined, "", "vsock:2:1234", "relative", `/${"x".repeat(200)}`])(
  "are not sent to %p",
  (name) => {
    const service = ServiceManager.open({ NOTIFY_SOCKET: name });
    expect([service.isThere, service.notify("READY=1")]).toEqual([false, false]);
  },
);

test("that nothing receives are no failure", () => {
  const service = ServiceManager.open({ NOTIFY_SOCKET: "/nowhere/notify" });
  expect([service.isThere, service.notify("READY=1")]).toEqual([true, false]);
});

test("are signs of life only while the workers answer", async () => {
  const { name, received } = await receive("path");
  const service = ServiceManager.open({ NOTIFY_SOCKET: name, WATCHDOG_USEC: "20000" });
  const state = { answers: true, asked: 0 };
  service.watch(async () => {
    state.asked++;
    if (!state.answers) throw new Error("no worker answers");
    return true;
  });
  cleanups.push(() => service.unwatch());
  await eventually(() => received().length >= 3);
  state.answers = false;
  service.notify("STATUS=silent");
  const { asked } = state;
  await eventually(() => state.asked >= asked + 3);
  service.notify("STATUS=end");
  await eventually(() => received().includes("STATUS=end"));
  expect(received().slice(received().indexOf("STATUS=silent"))).toEqual([
    "STATUS=silent",
    "STATUS=end",
  ]);
});

test("follow a gateway from its start over a handover to its end", async () => {
  const { name, received } = await receive("path");
  const gateway = await startGateway({
    binary: executable,
    workers: 1,
    env: { NOTIFY_SOCKET: name, WATCHDOG_USEC: "200000" },
  });
  cleanups.push(() => gateway.stop());
  const former = gateway.pid;
  await eventually(() => received().filter((line) => line === "WATCHDOG=1").length >= 2);
  expect(received()[0]).toBe("READY=1");
  const upgraded = await runCommand(["upgrade", "--data-dir", gateway.dataDir, "--drain", "1"], {
    binary: executable,
  });
  expect([upgraded.code, upgraded.stderr]).toEqual([0, ""]);
  const [, pid = ""] = /Process (\d+) serves/.exec(upgraded.stdout) ?? [];
  const next = Number(pid);
  cleanups.push(() => isGone(next) || process.kill(next, "SIGKILL"));
  const handedOver = received().indexOf(`MAINPID=${pid} READY=1`);
  expect(received().indexOf("RELOADING=1")).toBeGreaterThan(0);
  expect(handedOver).toBeGreaterThan(received().indexOf("RELOADING=1"));
  // The former process ends without a word, and the other one gives signs of life.
  await eventually(() => isGone(former));
  const count = () =>
    received()
      .slice(handedOver)
      .filter((line) => line === "WATCHDOG=1").length;
  await eventually(() => count() >= 2);
  expect(received()).not.toContain("STOPPING=1");
  process.kill(next, "SIGTERM");
  await eventually(() => received().includes("STOPPING=1"));
  await eventually(() => isGone(next));
  expect(received().at(-1)).toBe("STOPPING=1");
});
