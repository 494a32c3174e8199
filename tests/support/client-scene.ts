// The executable between real clients and real servers, with a listener in cleartext for each engine; knows no client.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./data-plane.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { executable } from "./executable.ts";

/** Those that serve HTTP/1.1 in cleartext to programs of others. */
export const clientEngines = ["bun", "sluice"] as const;
export type ClientEngine = (typeof clientEngines)[number];

export interface ClientScene {
  readonly gateway: Gateway;
  /** For files of a client; removed at the end. */
  readonly scratch: string;
  /** `http://127.0.0.1:port` of the engine's listener. */
  url(engine: ClientEngine): string;
  port(engine: ClientEngine): number;
  /** A route for a path and what is below it. */
  route(path: string, targetPort: number): Promise<void>;
  /** An empty folder. */
  folder(name: string): string;
  /** Runs a program to its end; throws with its output when it fails. */
  run(command: readonly string[], options?: RunOptions): Promise<string>;
  stop(): Promise<void>;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

export async function startClientScene(): Promise<ClientScene> {
  const scratch = mkdtempSync(join(tmpdir(), "sluice-clients-"));
  const gateway = await startGateway({ binary: executable, workers: 2 });
  const post = (path: string, body: object) => gateway.ok("POST", `/api/v1/${path}`, body);
  const ports = { bun: freePort(), sluice: gateway.httpPort };
  const listener = { name: "bun", address: "127.0.0.1", port: ports.bun, engine: "bun" };
  await post("listeners", listener);
  return {
    gateway,
    scratch,
    url: (engine) => `http://127.0.0.1:${ports[engine]}`,
    port: (engine) => ports[engine],
    async route(path, port) {
      const name = path.slice(1).replaceAll("/", "-");
      await post("services", { name, targets: [{ host: "127.0.0.1", port }] });
      await post("routes", { name, service_id: name, paths: [path] });
    },
    folder(name) {
      const path = mkdtempSync(join(scratch, `${name}-`));
      mkdirSync(path, { recursive: true });
      return path;
    },
    run: (command, options) => runIn(scratch, command, options),
    async stop() {
      await gateway.stop();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

/** Runs a program with `home` as its home; throws with its output when it fails. */
export async function runIn(
  home: string,
  command: readonly string[],
  { cwd = home, env = {}, input = "" }: RunOptions = {},
): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: home, LC_ALL: "C", ...env },
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const code = await child.exited;
  if (code !== 0)
    throw new Error(`${command.join(" ")}: ${child.signalCode ?? code}: ${out}${errors}`);
  return out + errors;
}
