// A real application on a free port of 127.0.0.1, with files of its own; knows no gateway.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { lackOf, pathOf } from "./needs.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface Application {
  readonly port: number;
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** Removed by `stop`. */
  readonly directory: string;
  stop(): Promise<void>;
}

export interface ApplicationPlace {
  readonly port: number;
  readonly directory: string;
}

export interface ApplicationOptions {
  /** The program and its arguments. */
  readonly command: (place: ApplicationPlace) => readonly string[];
  /** Contents by path in its directory. */
  readonly files?: (place: ApplicationPlace) => Readonly<Record<string, string>>;
  readonly env?: (place: ApplicationPlace) => Readonly<Record<string, string>>;
}

/** Resolves when it accepts requests, whatever it responds; throws with its output when it ends before. */
export async function startApplication(options: ApplicationOptions): Promise<Application> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-application-"));
  const place = { directory, port: quietPort() };
  for (const [name, content] of Object.entries(options.files?.(place) ?? {})) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  const [program = "", ...args] = options.command(place);
  const child = Bun.spawn([pathOf(program) ?? program, ...args], {
    cwd: directory,
    env: { PATH: process.env["PATH"] ?? "", HOME: directory, ...options.env?.(place) },
    stdio: ["ignore", Bun.file(join(directory, "output")), Bun.file(join(directory, "errors"))],
  });
  const url = `http://127.0.0.1:${place.port}`;
  const stop = async () => {
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), 5000);
    await child.exited;
    clearTimeout(late);
    rmSync(directory, { recursive: true, force: true });
  };
  const output = async () =>
    (await Bun.file(join(directory, "output")).text()) +
    (await Bun.file(join(directory, "errors")).text());
  try {
    // Servers without pages close the connection.
    const isThere = () =>
      fetch(url, { redirect: "manual" }).then(
        () => true,
        ({ code }) => code === "ECONNRESET",
      );
    await eventually(() => child.exitCode !== null || isThere());
    if (child.exitCode !== null) throw new Error(`${program} ended: ${await output()}`);
  } catch (error) {
    const text = await output();
    await stop();
    throw new Error(`${program}: ${text}`, { cause: error });
  }
  return { ...place, url, stop };
}

/** The folder of a package of npm in its exact version, installed once and kept in `dist`; `lacks`: why it is not there. */
export async function npmPackage(
  name: string,
  version: string,
): Promise<{ readonly folder: string; readonly lacks: string | null }> {
  const home = join(import.meta.dir, "../../dist/applications", `${name}@${version}`);
  const folder = join(home, "node_modules", name);
  const isThere = () => Bun.file(join(home, "complete")).exists();
  const lacks = lackOf("executable", "npm", "node");
  if (lacks !== null || (await isThere())) return { folder, lacks };
  mkdirSync(home, { recursive: true });
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", home];
  const child = Bun.spawn(["npm", "install", ...flags, `${name}@${version}`], {
    cwd: home,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const text = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) {
    const [reason = "npm failed"] = text.split("\n");
    return { folder, lacks: `the registry of npm for ${name} (${reason})` };
  }
  writeFileSync(join(home, "complete"), "");
  return { folder, lacks: null };
}
