// Sends one request to the source program and to the gateway, and reports which of them allows it; for any program.
import { connect } from "node:net";

export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly host: string;
  /** Lines with their ends. */
  readonly fields?: string;
  readonly from?: string;
}

/** What a request reached, `one` or `static`; null: denied. */
export interface Verdict {
  /** 0: the connection closed without a response. */
  readonly status: number;
  readonly open: string | null;
  /** Where a redirect leads; null: nowhere. */
  readonly location: string | null;
  /** Path of the request as it reached the origin; null: it did not. */
  readonly path: string | null;
}

/** Responses of origins and accessible pages contain it, followed by a name. */
const OPEN_FIELD = "x-open";
const PATH_FIELD = "x-path";

/** Sends it byte for byte, without the corrections of a client library; returns the response as received. */
export function exchange(
  { method = "GET", path, host, fields = "", from = "127.0.0.1" }: Asked,
  port: number,
): Promise<string> {
  const length = /^(?:POST|PUT|PATCH)$/.test(method) ? "Content-Length: 0\r\n" : "";
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${length}${fields}Connection: close\r\n\r\n`;
  return exchanged(head, { port, from });
}

export async function ask(asked: Asked, port: number): Promise<Verdict> {
  const received = await exchange(asked, port);
  const [, status = 0] = /^HTTP\/1\.1 (\d{3})/.exec(received) ?? [];
  const field = (name: string) =>
    new RegExp(`^${name}: *(.*?)\\r$`, "im").exec(received)?.[1] ?? null;
  const [open, location, seen] = [field(OPEN_FIELD), field("location"), field(PATH_FIELD)];
  return { status: Number(status), open, location, path: seen };
}

function exchanged(head: string, { port, from }: { port: number; from: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, localAddress: from });
    let received = "";
    socket.setTimeout(10_000, () => socket.destroy(new Error(`no answer to ${head}`)));
    socket.on("connect", () => socket.write(Buffer.from(head, "latin1")));
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(received));
  });
}

/** An origin that reports that a request reached it. */
export const startOpenOrigin = (name: string) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { pathname, search } = new URL(url);
      return new Response("ok", {
        headers: { [OPEN_FIELD]: name, [PATH_FIELD]: `${pathname}${search}` },
      });
    },
  });

/** A path as Bun and browsers normalize it first: the gateway matches and sends this. */
function normalized(path: string): string {
  const [target = "", query] = path.split(/\?(.*)/s);
  const url = URL.parse(`http://h${target}`);
  return (url?.pathname ?? target) + (query === undefined ? "" : `?${query}`);
}

export interface Judgement {
  readonly source: Verdict;
  readonly here: Verdict;
  /** Whether the gateway allows what the other program denies. */
  readonly isMoreOpen: boolean;
}

/** Where the gateway normalizes a path, the other program's decision for the normalized path counts as well. */
export async function judge(
  asked: Asked,
  { source: sourcePort, gateway }: { readonly source: number; readonly gateway: number },
): Promise<Judgement> {
  const [source, here] = await Promise.all([ask(asked, sourcePort), ask(asked, gateway)]);
  if (here.open === null || here.open === source.open) return { source, here, isMoreOpen: false };
  // Caddy strips a prefix and leaves no slash before the rest: the request target is invalid for its origin.
  if (source.status === 400 && !/%(?![0-9a-f]{2})|%00/i.test(asked.path))
    return { source, here, isMoreOpen: false };
  const path = normalized(asked.path);
  const again = path === asked.path ? source : await ask({ ...asked, path }, sourcePort);
  return { source, here, isMoreOpen: here.open !== again.open };
}
