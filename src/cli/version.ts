// The command `version`, and the version of the program itself; knows nothing else.
import manifest from "../../package.json" with { type: "json" };
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { CommandError, reportingErrors } from "./management-client.ts";
import { outputFlag, resultPrinter } from "./output.ts";
import { UsageError } from "./usage-error.ts";

export const version: string = manifest.version;

/** The bundler inserts them into a release; the environment could claim anything. */
declare const SLUICE_COMMIT: string | null | undefined;
declare const SLUICE_RELEASES: string | null | undefined;

/** The commit of a release; null in a checkout. */
const commit: string | null = typeof SLUICE_COMMIT === "string" ? SLUICE_COMMIT : null;
/** Where the repository that has built the release lists its newest one; null: unknown. */
const releases: string | null = typeof SLUICE_RELEASES === "string" ? SLUICE_RELEASES : null;

const flags: readonly Flag[] = [
  {
    name: "check",
    value: null,
    description: "Ask whether there is a newer release; without this flag no request is sent, ever",
  },
  {
    name: "releases-url",
    value: "URL",
    description: "Where --check asks: an address that responds as GitHub's releases/latest does",
    fallback: "GitHub's API for the repository of the release",
  },
  outputFlag,
];

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1_048_576;
const NEWER = 3;
const TAG = /^v?(\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[\w.-]{1,64})?)$/;

export const versionCommand: Command = {
  name: "version",
  summary: "Show the version, and the commit of a release",
  details:
    "With --check, exit code 0: there is no newer release; 3: there is one; 1: the address does not say.",
  flags,
  run(argv, { env, print }) {
    const given = parseFlags(flags, argv, env);
    const show = resultPrinter(given, print);
    const { platform, arch } = process;
    const own = { version, bun: Bun.version, platform, arch, commit };
    const made = commit === null ? "" : `, commit ${commit}`;
    const line = `sluice ${version} (Bun ${Bun.version}, ${platform} ${arch}${made})\n`;
    if (!given.has("check")) {
      show(own, line);
      return Promise.resolve(0);
    }
    const url = decodeUrl(given.get("releases-url") ?? releases);
    return reportingErrors(async () => {
      const newest = await newestRelease(url);
      const isNewer = Bun.semver.order(newest.version, version) > 0;
      const said = isNewer
        ? `sluice ${newest.version} is available${newest.page}`
        : `there is no newer release than ${version}`;
      show({ ...own, newest: newest.version, is_newer: isNewer }, `${line}${said}\n`);
      return isNewer ? NEWER : 0;
    });
  },
};

function decodeUrl(text: string | null): URL {
  if (text === null)
    throw new UsageError("--check: this build names no repository: give --releases-url URL");
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw new UsageError(`--releases-url: must be an http:// or https:// address, not "${text}"`);
}

/** Throws a CommandError. What the server sends reaches a terminal: nothing but a version and an encoded address. */
async function newestRelease(url: URL): Promise<{ version: string; page: string }> {
  const text = await download(url).catch((error: unknown) => {
    throw new CommandError(`${url.origin} does not say: ${(error as Error).message}`);
  });
  const { tag_name: tag, html_url: page } = parse(text);
  const [, found] = TAG.exec(typeof tag === "string" ? tag : "") ?? [];
  if (found === undefined)
    throw new CommandError(`${url.origin} does not say: there is no version in tag_name`);
  const link = typeof page === "string" ? URL.parse(page) : null;
  return { version: found, page: link?.protocol === "https:" ? `: ${link.href}` : "" };
}

async function download(url: URL): Promise<string> {
  const response = await fetch(url, {
    redirect: "error",
    headers: { accept: "application/vnd.github+json", "user-agent": "sluice" },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status !== 200) throw new Error(`it returned ${response.status}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`its response has more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): { readonly tag_name?: unknown; readonly html_url?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as object;
  } catch {
    return {};
  }
}
