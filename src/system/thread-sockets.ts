// Aborts all connections of one thread, on Linux, from any thread; knows nothing of what they carry.
import { ptr } from "bun:ffi";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { openLibc } from "./libc.ts";

/** A thread that accepts connections meanwhile has new ones after the first look. */
const MAX_LOOKS = 5;
/** `struct sockaddr` of the family AF_UNSPEC. */
const UNSPECIFIED = new Uint8Array(16);
const SHUT_RDWR = 2;

const descriptorPath = (descriptor: number | string) => `/proc/self/fd/${descriptor}`;

/**
 * The descriptor by which the calling thread waits for its sockets: its event loop has an epoll of its own, which lists them. 0: not
 * known, because the system is another one.
 */
export function findPoll(): number {
  try {
    // Stays open: as long as the epoll has it, it is that of this thread.
    const unix = `\0sluice-${crypto.randomUUID()}`;
    const mark = Bun.listen({ unix, socket: { data() {} } });
    mark.unref();
    const { fd: own } = mark as unknown as { readonly fd: number };
    return Number(readdirSync("/proc/self/fd").find((poll) => polls(poll, own)) ?? 0);
  } catch {
    return 0;
  }
}

const polls = (poll: string, descriptor: number) =>
  linkOf(poll) === "anon_inode:[eventpoll]" &&
  socketsOf(poll).some((socket) => socket.descriptor === descriptor);

interface PolledSocket {
  readonly descriptor: number;
  readonly link: string;
}

function socketsOf(poll: number | string): readonly PolledSocket[] {
  const lines = readFileSync(`/proc/self/fdinfo/${poll}`, "latin1").matchAll(
    /^tfd: +(\d+) .* ino:([\da-f]+)/gm,
  );
  return Array.from(lines, ([, descriptor, inode = ""]) => ({
    descriptor: Number(descriptor),
    link: `socket:[${Number.parseInt(inode, 16)}]`,
  }));
}

/**
 * Resets the connections of a thread and stops its listeners, with the connections that wait there. Its event loop, or Bun's when the
 * thread is terminated, would else send responses that no code has decided on: 204 where a handler is interrupted. `poll`: from
 * `findPoll` of that thread. Does nothing where the system cannot.
 */
export function abortSockets(poll: number): void {
  if (poll === 0) return;
  const aborted = new Set<string>();
  try {
    const libc = openSocketCalls();
    if (libc === null) return;
    for (let look = 0; look < MAX_LOOKS; look++) {
      const fresh = socketsOf(poll).filter(({ link }) => !aborted.has(link));
      if (fresh.length === 0) return;
      for (const socket of fresh) {
        abort(libc, socket);
        aborted.add(socket.link);
      }
    }
  } catch {
    // The thread and its epoll have ended meanwhile.
  }
}

function abort(libc: SocketCalls, { descriptor, link }: PolledSocket): void {
  // The thread may close it now, and another one get its number: only the copy stays the same.
  const copy = libc.dup(descriptor);
  if (copy < 0) return;
  // Neither of them changes what the number stands for in the thread: both leave a socket without a connection.
  if (linkOf(copy) === link) {
    libc.connect(copy, ptr(UNSPECIFIED), UNSPECIFIED.length);
    libc.shutdown(copy, SHUT_RDWR);
  }
  libc.close(copy);
}

type SocketCalls = NonNullable<ReturnType<typeof openSocketCalls>>;

/** `connect` without an address resets a connection (tcp_disconnect), `shutdown` ends what has none, such as QUIC. */
const openSocketCalls = () =>
  openLibc({
    dup: { args: ["i32"], returns: "i32" },
    close: { args: ["i32"], returns: "i32" },
    connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
    shutdown: { args: ["i32", "i32"], returns: "i32" },
  });

function linkOf(descriptor: number | string): string {
  try {
    return readlinkSync(descriptorPath(descriptor));
  } catch {
    return "";
  }
}
