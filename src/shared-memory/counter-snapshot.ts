// The counters that outlive the gateway, as bytes; knows no file and no database.
import {
  type CounterSlots,
  KIND_MASK,
  kinds,
  marks,
  PERSISTED,
  usableLow,
} from "./counter-slots.ts";

/** Version of the format. */
const FORMAT = 1;
/** As 64-bit numbers: the format, the salt, the number of rows. */
const HEADER_BYTES = 24;
/** Both values and the expiry; as 32-bit integers the key's halves, the flags and the window. */
const ROW_BYTES = 40;

/** The persisted entries that have not expired; null when no instance persists counters. */
export function takeSnapshot(slots: CounterSlots): Uint8Array | null {
  if (Atomics.load(slots.marks, marks.persisted) === 0) return null;
  const tick = slots.tick(slots.now());
  const isPersisted = (slot: number) =>
    (slots.flags(slot) & PERSISTED) !== 0 && slots.expires(slot) > tick;
  const persisted: number[] = [];
  for (let slot = 0; slot < slots.count; slot++) if (isPersisted(slot)) persisted.push(slot);
  const buffer = new ArrayBuffer(HEADER_BYTES + persisted.length * ROW_BYTES);
  let rows = 0;
  for (const slot of persisted) {
    const at = HEADER_BYTES + rows * ROW_BYTES;
    const numbers = new Float64Array(buffer, at, 3);
    const integers = new Int32Array(buffer, at + 24, 4);
    const group = slots.groupOfSlot(slot);
    const isStillPersisted = slots.locks.holding(group, () => {
      // Checked again under the lock: the slot may have another key now.
      if (!isPersisted(slot) || !slots.isWhole(slot)) return false;
      numbers[0] = slots.first(slot);
      numbers[1] = slots.second(slot);
      numbers[2] = slots.time(slots.expires(slot));
      integers[0] = slots.low(slot);
      integers[1] = slots.high(slot);
      integers[2] = slots.flags(slot);
      integers[3] = slots.windowOf(slot);
      return true;
    });
    if (isStillPersisted) rows++;
  }
  new Float64Array(buffer, 0, 1)[0] = FORMAT;
  new BigUint64Array(buffer, 8, 1)[0] = slots.salt[0] ?? 0n;
  new Float64Array(buffer, 16, 1)[0] = rows;
  return new Uint8Array(buffer, 0, HEADER_BYTES + rows * ROW_BYTES);
}

/** Adds entries to a table that is not in use yet; returns their number. Ignores bytes of another format. */
export function restoreSnapshot(slots: CounterSlots, bytes: Uint8Array): number {
  if (bytes.length < HEADER_BYTES) return 0;
  const { buffer } = bytes.slice();
  const [format = 0, , rows = 0] = new Float64Array(buffer, 0, 3);
  if (format !== FORMAT || bytes.length !== HEADER_BYTES + rows * ROW_BYTES) return 0;
  // The keys are hashes with this salt.
  slots.salt.set(new BigUint64Array(buffer, 8, 1));
  const tick = slots.tick(slots.now());
  let restored = 0;
  for (let row = 0; row < rows; row++) {
    const at = HEADER_BYTES + row * ROW_BYTES;
    const [value = 0, other = 0, expiresAt = 0] = new Float64Array(buffer, at, 3);
    const [low = 0, high = 0, flags = 0, window = 0] = new Int32Array(buffer, at + 24, 4);
    const kind = flags & KIND_MASK;
    const expires = slots.tick(expiresAt);
    if (expires <= tick || (kind !== kinds.window && kind !== kinds.bucket)) continue;
    const slot = slots.claim({ low: usableLow(low), high }, kind | PERSISTED, tick);
    if (slot === -1) continue;
    slots.setFirst(slot, value);
    slots.setSecond(slot, other);
    slots.setUse(slot, { flags: kind | PERSISTED, window, tick });
    slots.setExpires(slot, expires);
    restored++;
  }
  if (restored > 0) Atomics.store(slots.marks, marks.persisted, 1);
  return restored;
}
