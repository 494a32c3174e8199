// What the system holds for a socket: bounds what a near peer can send before it is read; on Linux. Knows no protocol.
import { FFIType, ptr } from "bun:ffi";
import { openLibc } from "./libc.ts";

const [SOL_SOCKET, SO_RCVBUF, IPPROTO_TCP, TCP_INFO] = [1, 8, 6, 11] as const;
const SIOCOUTQ = 0x5411;
/** MSG_PEEK and MSG_DONTWAIT. */
const LOOK = 0x42;

/** In `struct tcp_info`: smoothed round-trip time in microseconds. */
const RTT_OFFSET = 68;
const INFO_BYTES = 128;

/** Over a longer way the bound would bound the rate too: at 5 ms it is 20 MB/s. */
const NEAR_MICROSECONDS = 5_000;

/** The system takes twice as much, and half of it for its own structures. */
const BOUND = new Int32Array([65_536]);

/** Bun reads at most as much at once. */
const FREE = new Int32Array([524_288]);

const info = new Uint8Array(INFO_BYTES);
const count = new Int32Array(1);
const infoSize = new Uint32Array([INFO_BYTES]);
const rtt = new DataView(info.buffer);

type SocketOptions = ReturnType<typeof openSocketOptions>;

const openSocketOptions = () =>
  openLibc({
    getsockopt: {
      args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
      returns: FFIType.i32,
    },
    recv: {
      args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32],
      returns: FFIType.i32,
    },
    ioctl: { args: [FFIType.i32, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
    setsockopt: {
      args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.u32],
      returns: FFIType.i32,
    },
  });

/** Undefined: not opened yet. */
let libc: SocketOptions | undefined;

/**
 * Bun reads all that the system has of a socket, up to 512 KB, and a gateway keeps it while the other side does not read. So near
 * peers get a buffer of about 100 KB. Those far away need one that grows with their rate, and keep it. Nothing happens where the
 * system cannot.
 */
export function boundReceiveBuffer(socket: object): void {
  const roundTrip = roundTripOf(socket);
  if (roundTrip === null || roundTrip > NEAR_MICROSECONDS) return;
  libc?.setsockopt(descriptorOf(socket), SOL_SOCKET, SO_RCVBUF, ptr(BOUND), BOUND.byteLength);
}

/** Whether the peer is near, as far as the system knows. */
export const isNear = (socket: object): boolean => (roundTripOf(socket) ?? 0) <= NEAR_MICROSECONDS;

/** To the peer and back, in microseconds; null where the system does not say. */
export function roundTripOf(socket: object): number | null {
  const fd = descriptorOf(socket);
  if (fd < 0) return null;
  libc ??= openSocketOptions();
  if (libc === null) return null;
  infoSize[0] = INFO_BYTES;
  const isKnown = libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, ptr(info), ptr(infoSize)) === 0;
  return isKnown ? rtt.getUint32(RTT_OFFSET, true) : null;
}

/** The socket gets a peer that reads: small reads cost more. */
export function freeReceiveBuffer(socket: object): void {
  const fd = descriptorOf(socket);
  if (fd >= 0) libc?.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, ptr(FREE), FREE.byteLength);
}

/**
 * Less than this waits in the system for a peer that reads, also when it shares a processor and gets to it late. The system takes
 * twice as much of a near peer that does not, so that the bound comes before anything is held.
 */
export const BEHIND_BYTES = 1_048_576;

/** Bytes that were written and that the peer's system has not taken; 0 where the system does not say. */
export function unsentBytes(socket: object): number {
  const fd = descriptorOf(socket);
  if (fd < 0) return 0;
  libc ??= openSocketOptions();
  const isKnown = libc?.ioctl(fd, SIOCOUTQ, ptr(count)) === 0;
  return isKnown ? (count[0] ?? 0) : 0;
}

/** Whether there is something to read, or the peer has closed. False where the system does not say. */
export function hasInput(socket: object): boolean {
  const fd = descriptorOf(socket);
  if (fd < 0) return false;
  libc ??= openSocketOptions();
  return (libc?.recv(fd, ptr(count), 1, LOOK) ?? -1) >= 0;
}

const descriptorOf = (socket: object): number => (socket as { readonly fd?: number }).fd ?? -1;
