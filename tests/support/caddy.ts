// A real Caddy whose configuration tests replace while it runs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathOf } from "./needs.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface Caddy {
  /** Where its servers may listen. */
  readonly port: number;
  /** Replaces the configuration; throws with Caddy's message when it is invalid. */
  load(apps: object): Promise<void>;
  /** A Caddyfile as the JSON that Caddy makes of it. */
  adapt(caddyfile: string): Promise<{ readonly apps: object }>;
  stop(): Promise<void>;
}

/** Resolves when its admin API responds. */
export async function startCaddy(): Promise<Caddy> {
  const home = mkdtempSync(join(tmpdir(), "sluice-caddy-"));
  const adminPort = quietPort();
  const port = quietPort();
  const admin = { listen: `127.0.0.1:${adminPort}` };
  const url = `http://127.0.0.1:${adminPort}`;
  const child = Bun.spawn([pathOf("caddy") ?? "caddy", "run", "--config", "-"], {
    stdio: [new Blob([JSON.stringify({ admin })]), "ignore", "ignore"],
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      XDG_DATA_HOME: home,
      XDG_CONFIG_HOME: home,
    },
  });
  const stop = async () => {
    child.kill();
    await child.exited;
    rmSync(home, { recursive: true, force: true });
  };
  const post = async (path: string, type: string, body: string): Promise<string> => {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      body,
      headers: { "content-type": type },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`caddy: ${text}`);
    return text;
  };
  try {
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error("caddy ended");
      return (await fetch(`${url}/config/`)).ok;
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port,
    stop,
    load: async (apps) => {
      await post("/load", "application/json", JSON.stringify({ admin, apps }));
    },
    adapt: async (caddyfile) =>
      JSON.parse(await post("/adapt", "text/caddyfile", caddyfile)).result,
  };
}
