// How a gateway hands over to a new process, and continues when that one fails; the processes are real, the gateway is a list of steps.
import { expect, test } from "bun:test";
import { ServiceManager } from "../../../src/supervisor/service-manager.ts";
import { Replacement } from "../../../src/cli/replacement.ts";
import { createLog } from "../../../src/log.ts";
import { eventually } from "../../support/poll.ts";

function scene(deadlineMs = 60_000) {
  const steps: string[] = [];
  const log = createLog({ level: "error", format: "json", color: false, sink: () => undefined });
  const problem: { text: string | null } = { text: null };
  const replacement = new Replacement(
    {
      async pause() {
        steps.push("pause");
      },
      async resume() {
        steps.push("resume");
        return problem.text;
      },
      closeManagement: () => void steps.push("close management"),
      openManagement: () => void steps.push("open management"),
      managementPort: () => 9080,
      closeSocket: () => void steps.push("close socket"),
      words: [],
      service: ServiceManager.open({}),
      log,
    },
    { deadlineMs },
  );
  return { replacement, steps, problem };
}

const hanging = { argv: ["/bin/sh", "-c", "exec sleep 1000"], drain_seconds: 3 };
const version = "9.9.9";

/** Stands for the new process. */
const sleeper = () => Bun.spawn(["sleep", "1000"], { stdio: ["ignore", "ignore", "ignore"] });

test("a process that hangs is killed at the timeout, and another one may start", async () => {
  const { replacement, steps } = scene(300);
  const message = "the new process does not serve after 0.3 seconds";
  await expect(replacement.replace(hanging)).rejects.toThrow(message);
  await expect(replacement.replace(hanging)).rejects.toThrow(message);
  expect(steps).toEqual([]);
});

test("only one replacement runs at a time, whatever started it", async () => {
  const { replacement } = scene();
  const first = replacement.replace(hanging).catch(String);
  await expect(replacement.replace(hanging)).rejects.toThrow("upgrade is already in progress");
  replacement.abandon();
  expect(await first).toContain("the gateway stops");
  await expect(replacement.replace(hanging)).rejects.toThrow("upgrade is already in progress");
});

test("the steps run in order, and a second process can run none of them", async () => {
  const { replacement, steps } = scene();
  const child = sleeper();
  const { pid } = child;
  await expect(replacement.release({ pid })).rejects.toThrow("already");
  expect(await replacement.begin({ pid, version })).toEqual({ management_port: 9080 });
  await expect(replacement.begin({ pid: pid + 1, version })).rejects.toThrow("already");
  await expect(replacement.finish({ pid })).rejects.toThrow("serves on by itself");
  await expect(replacement.release({ pid: pid + 1 })).rejects.toThrow("already");
  await replacement.release({ pid });
  await replacement.finish({ pid });
  expect(steps).toEqual(["pause", "close management", "close socket"]);
  expect(await replacement.done).toEqual({ pid, version, drainMs: 300_000 });
  await expect(replacement.begin({ pid, version })).rejects.toThrow();
  child.kill("SIGKILL");
});

test("the old process resumes when the new one dies", async () => {
  const { replacement, steps, problem } = scene();
  problem.text = "the database is newer";
  const child = sleeper();
  await replacement.begin({ pid: child.pid, version });
  await replacement.release({ pid: child.pid });
  child.kill("SIGKILL");
  await eventually(() => steps.length >= 4);
  expect(steps).toEqual(["pause", "close management", "resume", "open management"]);
});
