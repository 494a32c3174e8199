// Sends one request to the program that was migrated from and to the gateway, and says who of them lets it in; knows no program.
import { connect } from "node:net";

export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly host: string;
  /** Lines with their ends. */
  readonly fields?: string;
  readonly from?: string;
}

/** What a request has got to, `one` or `static`; null: nothing but a refusal. */
export interface Verdict {
  /** 0: the connection was ended without an answer. */
  readonly status: number;
  readonly open: string | null;
}

/** Answers of origins and pages that are open to clients hold it, with a name behind it. */
const OPEN_FIELD = "x-open";

/** Sends it as it is written, without anything that a client library would mend. */
export async function ask(
  { method = "GET", path, host, fields = "", from = "127.0.0.1" }: Asked,
  port: number,
): Promise<Verdict> {
  const length = /^(?:POST|PUT|PATCH)$/.test(method) ? "Content-Length: 0\r\n" : "";
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${length}${fields}Connection: close\r\n\r\n`;
  const received = await exchanged(head, { port, from });
  const [, status = 0] = /^HTTP\/1\.1 (\d{3})/.exec(received) ?? [];
  const open = new RegExp(`^${OPEN_FIELD}: *(.*?)\\r$`, "im").exec(received)?.[1] ?? null;
  return { status: Number(status), open };
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

/** An origin that says that it was reached. */
export const startOpenOrigin = (name: string) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("ok", { headers: { [OPEN_FIELD]: name } }),
  });

/** As Bun and browsers read a path before anything looks at it: the gateway judges and sends this. */
function normalized(path: string): string {
  const [target = "", query] = path.split(/\?(.*)/s);
  const url = URL.parse(`http://h${target}`);
  return (url?.pathname ?? target) + (query === undefined ? "" : `?${query}`);
}

export interface Judgement {
  readonly source: Verdict;
  readonly here: Verdict;
  /** Whether the gateway lets in what the other program does not. */
  readonly isMoreOpen: boolean;
}

/** Where the gateway reads a path anew, what the other program says of the path that is read counts as well. */
export async function judge(
  asked: Asked,
  { source: sourcePort, gateway }: { readonly source: number; readonly gateway: number },
): Promise<Judgement> {
  const [source, here] = await Promise.all([ask(asked, sourcePort), ask(asked, gateway)]);
  if (here.open === null || here.open === source.open) return { source, here, isMoreOpen: false };
  // Caddy has cut a prefix and left no slash in front of the rest: its origin does not know what it is asked for.
  if (source.status === 400 && !/%(?![0-9a-f]{2})|%00/i.test(asked.path))
    return { source, here, isMoreOpen: false };
  const path = normalized(asked.path);
  const again = path === asked.path ? source : await ask({ ...asked, path }, sourcePort);
  return { source, here, isMoreOpen: here.open !== again.open };
}
