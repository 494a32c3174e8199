// An HTTP/1.1 target that reads requests byte by byte, and tells whole bodies from those that break off.
import type { Socket } from "bun";

export interface RawOrigin {
  readonly port: number;
  /** Requests whose body is still arriving. */
  readonly open: number;
  /** Requests that broke off before their end. */
  readonly broken: number;
  /** Complete bodies. */
  readonly bodies: readonly string[];
  stop(): void;
}

interface Reading {
  text: string;
}

/** Responds with the request as JSON. */
export function startRawOrigin(): RawOrigin {
  const readings = new Set<Reading>();
  const bodies: string[] = [];
  let broken = 0;
  const server = Bun.listen<Reading>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { text: "" };
      },
      data(socket, chunk) {
        readings.add(socket.data);
        socket.data.text += chunk.toString("latin1");
        const whole = readWhole(socket.data.text);
        if (whole === null) return;
        socket.data.text = "";
        readings.delete(socket.data);
        bodies.push(whole.body);
        answer(socket, JSON.stringify(whole));
      },
      close(socket) {
        if (readings.delete(socket.data)) broken++;
      },
    },
  });
  return {
    port: server.port,
    get open() {
      return readings.size;
    },
    get broken() {
      return broken;
    },
    bodies,
    stop: () => server.stop(true),
  };
}

function answer(socket: Socket<Reading>, text: string): void {
  const response = Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
  // Larger than the kernel takes at once: the rest follows.
  const send = (rest: Buffer): void => {
    const written = socket.write(rest);
    if (written >= 0 && written < rest.length) setTimeout(() => send(rest.subarray(written)), 1);
  };
  send(response);
}

/** Null until the body is complete. */
function readWhole(text: string) {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [line = "", ...fields] = text.slice(0, end).split("\r\n");
  const [method = "", target = ""] = line.split(" ");
  const headers: Record<string, string> = {};
  for (const field of fields) {
    const colon = field.indexOf(":");
    const name = field.slice(0, colon).toLowerCase();
    const value = field.slice(colon + 1).trim();
    // A list in several lines is one list (RFC 9110 section 5.3).
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  const rest = text.slice(end + 4);
  const body = headers["transfer-encoding"] === "chunked" ? decoded(rest) : sized(rest, headers);
  return body === null ? null : { method, target, headers, body };
}

function sized(rest: string, headers: Record<string, string>): string | null {
  const length = Number(headers["content-length"] ?? 0);
  return rest.length < length ? null : rest.slice(0, length);
}

function decoded(rest: string): string | null {
  let body = "";
  for (let at = 0; ;) {
    const end = rest.indexOf("\r\n", at);
    if (end < 0) return null;
    const size = Number.parseInt(rest.slice(at, end), 16);
    if (rest.length < end + 2 + size + 2) return null;
    if (size === 0) return body;
    body += rest.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}
