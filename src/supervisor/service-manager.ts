// Notifies systemd of the start, a reload and the end of the gateway, and of its life, see sd_notify(3); knows nothing of the gateway.
import { FFIType, ptr } from "bun:ffi";
import { openLibc } from "../system/libc.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0x80000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** Of `sockaddr_un`, with a zero at the end. */
const MAX_PATH_BYTES = 107;

export class ServiceManager {
  readonly #send: ((text: string) => boolean) | null;
  /** Microseconds between two signs of life at most; 0: none are wanted. */
  readonly #watchdogUs: number;
  #timer: Timer | null = null;
  #isStopped = false;

  private constructor(send: ((text: string) => boolean) | null, watchdogUs: number) {
    this.#send = send;
    this.#watchdogUs = watchdogUs;
  }

  /** Of the variables that systemd sets; without them all methods do nothing. */
  static open(env: Readonly<Record<string, string | undefined>>): ServiceManager {
    const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog } = env;
    const send = socket === undefined ? null : openSender(socket);
    const watchdogUs = Number(watchdog ?? 0);
    return new ServiceManager(send, Number.isSafeInteger(watchdogUs) ? watchdogUs : 0);
  }

  /** Whether notifications can be sent. */
  get isThere(): boolean {
    return this.#send !== null;
  }

  /** False when systemd did not get it. */
  notify(...lines: readonly string[]): boolean {
    return this.#send?.(lines.join("\n")) ?? false;
  }

  /** Sends a sign of life twice within the time that systemd allows, as long as `isAlive` says so. */
  watch(isAlive: () => Promise<boolean>): void {
    if (this.#send === null || this.#watchdogUs <= 0) return;
    const look = async () => {
      const alive = await isAlive().catch(() => false);
      if (alive && !this.#isStopped) this.notify("WATCHDOG=1");
    };
    void look();
    this.#timer = setInterval(() => void look(), this.#watchdogUs / 2000).unref();
  }

  /** Another process gives the signs of life, or none does. */
  unwatch(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}

/** Bun has no datagram sockets of this family. Null: not Linux, or a kind of address that is not a path. */
function openSender(path: string): ((text: string) => boolean) | null {
  const { i32, u64, ptr: pointer } = FFIType;
  const libc = openLibc({
    socket: { args: [i32, i32, i32], returns: i32 },
    sendto: { args: [i32, pointer, u64, i32, pointer, i32], returns: FFIType.i64 },
    close: { args: [i32], returns: i32 },
  });
  const address = addressOf(path);
  if (libc === null || address === null) return null;
  return (text) => {
    const socket = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return false;
    const bytes = new TextEncoder().encode(text);
    const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    const to = [ptr(address), address.length] as const;
    const sent = libc.sendto(socket, ptr(bytes), BigInt(bytes.length), flags, ...to);
    libc.close(socket);
    return Number(sent) === bytes.length;
  };
}

/** `sockaddr_un` of unix(7): a path, or a name in the abstract namespace, which begins with `@`. */
function addressOf(path: string): Uint8Array | null {
  const bytes = Buffer.from(path);
  if (!/^[/@]./.test(path) || bytes.length > MAX_PATH_BYTES) return null;
  const isAbstract = path.startsWith("@");
  if (isAbstract) bytes[0] = 0;
  // In the byte order of both processors that there are executables for.
  const family = Buffer.from([AF_UNIX, 0]);
  return Buffer.concat(isAbstract ? [family, bytes] : [family, bytes, Buffer.alloc(1)]);
}
