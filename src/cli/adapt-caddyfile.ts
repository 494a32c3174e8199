// Converts a Caddyfile to JSON by running Caddy; knows nothing of the JSON.
import { spawnSync } from "node:child_process";
import { dirname, resolve } from "node:path";
import { ADAPT_FIRST, isCaddyfile } from "../import/caddy/caddyfile.ts";
import { MAX_SOURCE_BYTES } from "../import/programs.ts";
import { CommandError } from "./management-client.ts";

const TIMEOUT_MS = 60_000;

/**
 * The bytes as they are when they are JSON. `path`: the file, `-` for standard input, of which `bytes` are the content. Caddy runs in the folder of the file, where its
 * imports are, with this environment, for `{$NAME}`. Throws a CommandError with Caddy's message, or without a `caddy` on the PATH.
 */
export function adaptCaddyfile(
  path: string,
  bytes: Uint8Array,
  env: Readonly<Record<string, string | undefined>>,
): Uint8Array {
  if (!isCaddyfile(new TextDecoder().decode(bytes))) return bytes;
  const program = Bun.which("caddy", { PATH: env["PATH"] ?? "" });
  if (program === null) throw new CommandError(`${path}: ${ADAPT_FIRST}`);
  const isInput = path === "-";
  const file = isInput ? "/dev/stdin" : resolve(path);
  // No shell: the name of the file is one argument, whatever it holds.
  const { status, stdout, stderr, error } = spawnSync(
    program,
    ["adapt", "--config", file, "--adapter", "caddyfile"],
    {
      cwd: isInput ? process.cwd() : dirname(file),
      env,
      input: isInput ? bytes : "",
      timeout: TIMEOUT_MS,
      maxBuffer: MAX_SOURCE_BYTES,
    },
  );
  if (status === 0 && error === undefined) return stdout;
  const message = error?.message ?? messageOf(stderr.toString());
  throw new CommandError(`${path}: ${program} adapt: ${message}`);
}

/** Caddy logs warnings as JSON before its error. */
const messageOf = (stderr: string): string =>
  stderr
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^(?:\{|\d{4}\/)/.test(line))
    .join(" ")
    .trim() || "it failed without a message";
