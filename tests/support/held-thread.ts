// A gateway whose main thread is measured: how long one piece of work holds it, in processor time.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, type GatewayOptions, startGateway } from "./gateway.ts";

export interface MeasuredGateway {
  readonly gateway: Gateway;
  /**
   * Runs `work` and asks for /healthz all the time, one request after the other: how many were answered before its end, and the
   * longest piece of work of the main thread.
   */
  during(work: () => Promise<unknown>): Promise<{ answered: number; heldMs: number }>;
  stop(): Promise<void>;
}

export async function startMeasured(options: GatewayOptions = {}): Promise<MeasuredGateway> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-held-"));
  const file = join(directory, "held");
  const gateway = await startGateway({
    ...options,
    main: join(import.meta.dir, "measured-main.ts"),
    env: { ...options.env, SLUICE_TEST_HELD_FILE: file },
  });
  const heldSoFar = () => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);
  const healthz = async () => void (await (await gateway.api("GET", "/healthz")).text());
  return {
    gateway,
    async during(work) {
      const from = heldSoFar().length;
      let isDone = false;
      let answered = 0;
      const working = work().finally(() => {
        isDone = true;
      });
      while (!isDone) {
        await healthz();
        if (!isDone) answered++;
      }
      await working;
      // What the last piece of work has taken is written after it.
      for (let turn = 0; turn < 5; turn++) await healthz();
      const held = heldSoFar().slice(from).map(Number);
      return { answered, heldMs: Math.max(0, ...held) };
    },
    async stop() {
      await gateway.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
