// A real HAProxy with one configuration on a free port.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathOf } from "./needs.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface Haproxy {
  readonly port: number;
  stop(): Promise<void>;
}

/** Resolves when it accepts connections; throws with its message when the configuration is invalid. */
export async function startHaproxy(configuration: (bind: string) => string): Promise<Haproxy> {
  const home = mkdtempSync(join(tmpdir(), "sluice-haproxy-"));
  const port = quietPort();
  const file = join(home, "haproxy.cfg");
  await Bun.write(file, configuration(`127.0.0.1:${port}`));
  const child = Bun.spawn([pathOf("haproxy") ?? "haproxy", "-db", "-f", file], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const stop = async () => {
    child.kill();
    await child.exited;
    rmSync(home, { recursive: true, force: true });
  };
  try {
    await eventually(async () => {
      if (child.exitCode !== null)
        throw new Error(`haproxy ended: ${await new Response(child.stderr).text()}`);
      const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } });
      socket.end();
      return true;
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}
