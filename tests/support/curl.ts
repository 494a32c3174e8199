// Runs curl, which supports what Bun's client does not: HTTP/2, odd request targets, raw headers.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface CurlAnswer {
  readonly status: number;
  /** As curl names it: `1.1` or `2`. */
  readonly version: string;
  /** Names in lower case, in order, duplicates kept. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly sha256: string;
  readonly size: number;
  /** The whole body; null when it is longer than 1 MiB. */
  readonly body: Uint8Array | null;
  header(name: string): string | null;
  /** The body as Latin-1 text. */
  text(): string;
}

const KEEP_BYTES = 1_048_576;

/** Throws with curl's message without a complete response. Does not follow redirects or verify certificates. */
export async function curl(url: string, args: readonly string[] = []): Promise<CurlAnswer> {
  const scratch = mkdtempSync(join(tmpdir(), "sluice-curl-"));
  const headPath = join(scratch, "head");
  const child = Bun.spawn(
    [
      ...["curl", "-q", "--silent", "--show-error", "--insecure", "--globoff", "--path-as-is"],
      ...["--speed-limit", "1", "--speed-time", "120", "--dump-header", headPath],
      ...["--write-out", "%{stderr}\n%{http_version}"],
      ...(args.includes("--head") ? ["--output", "/dev/null"] : []),
      ...args,
      url,
    ],
    {
      env: { PATH: process.env["PATH"] ?? "", HOME: scratch },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  try {
    const [body, stderr, code] = await Promise.all([
      digest(child.stdout),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`curl ${url} ended with ${code}: ${stderr.trim()}`);
    return toAnswer(readFileSync(headPath, "latin1"), stderr.split("\n").at(-1) ?? "", body);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

interface Body {
  readonly sha256: string;
  readonly size: number;
  readonly body: Uint8Array | null;
}

async function digest(stream: ReadableStream<Uint8Array>): Promise<Body> {
  const hash = new Bun.CryptoHasher("sha256");
  const kept: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    hash.update(chunk);
    size += chunk.length;
    if (size <= KEEP_BYTES) kept.push(chunk);
  }
  const body = size <= KEEP_BYTES ? Buffer.concat(kept) : null;
  return { sha256: hash.digest("hex"), size, body };
}

function toAnswer(dump: string, version: string, body: Body): CurlAnswer {
  // Interim responses such as 100 come first.
  const head = dump.trimEnd().split("\r\n\r\n").at(-1) ?? "";
  const [statusLine = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return {
    ...body,
    status: Number(statusLine.split(" ")[1]),
    version,
    headers,
    header: (name) => headers.find(([known]) => known === name)?.[1] ?? null,
    text: () => Buffer.from(body.body ?? []).toString("latin1"),
  };
}
