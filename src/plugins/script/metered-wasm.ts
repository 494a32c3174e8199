// Instruments a WebAssembly module with a work counter that traps at its limit; knows no script.

/**
 * Export name of the counter, a mutable i32. A turn of a loop and a call cost 1, and so does every 32 bytes of a bulk copy or
 * fill. It is 0 or less after a trap.
 */
export const COUNTER = "turns";

/** WebAssembly Core 2.0, section 5.5.2: ids of the sections that change. */
const SECTION = { custom: 0, import: 2, global: 6, export: 7, code: 10 } as const;
const HEADER_BYTES = 8;

/** An unsupported construct of the module: without instrumentation the engine could not be stopped. */
class UnknownCode extends Error {}

/** Reads numbers and names of the binary format (section 5.2). */
class Reader {
  at: number;
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw new UnknownCode("the module ends too early");
    return byte;
  }

  u32(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  /** An LEB128 number. */
  skipNumber(): void {
    while (this.byte() >= 0x80);
  }

  skipNumbers(count: number): void {
    for (let left = count; left > 0; left--) this.skipNumber();
  }

  skip(bytes: number): void {
    this.at += bytes;
  }
}

function numberBytes(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}

interface Section {
  readonly id: number;
  readonly body: Uint8Array;
}

function sectionsOf(bytes: Uint8Array): Section[] {
  const sections: Section[] = [];
  const reader = new Reader(bytes, HEADER_BYTES);
  while (reader.at < bytes.length) {
    const id = reader.byte();
    const size = reader.u32();
    sections.push({ id, body: bytes.subarray(reader.at, reader.at + size) });
    reader.skip(size);
  }
  return sections;
}

/** The instrumented module; the counter starts at 2^31 - 1, because instantiation may run code. */
export function metered(wasm: Uint8Array): Uint8Array {
  // Custom sections refer to code offsets, which change.
  const sections = sectionsOf(wasm).filter(({ id }) => id !== SECTION.custom);
  const bodyOf = (wanted: number) => sections.find(({ id }) => id === wanted)?.body;
  const globals = bodyOf(SECTION.global);
  if (globals === undefined) throw new UnknownCode("the module has no globals");
  const counter = importedGlobals(bodyOf(SECTION.import)) + new Reader(globals).u32();
  const prices = pricesIn(counter);
  const parts = sections.map(({ id, body }) => {
    if (id === SECTION.global) return sectionBytes(id, withElements(body, [COUNTING, HOLDING]));
    if (id === SECTION.export) return sectionBytes(id, withElements(body, [exported(counter)]));
    return sectionBytes(id, id === SECTION.code ? meteredCode(body, prices) : body);
  });
  return Buffer.concat([wasm.subarray(0, HEADER_BYTES), ...parts]);
}

/** Globals: i32, mutable, i32.const 2^31 - 1 or 0, end. */
const COUNTING = [0x7f, 0x01, 0x41, 0xff, 0xff, 0xff, 0xff, 0x07, 0x0b];
/** A local for the length of a copy, which is used twice. */
const HOLDING = [0x7f, 0x01, 0x41, 0x00, 0x0b];

const exported = (counter: number) => [
  ...[COUNTER.length, ...Buffer.from(COUNTER)],
  ...[0x03, ...numberBytes(counter)],
];

/** Instructions that decrement the counter. */
interface Prices {
  /** For a turn or a call. */
  readonly turn: Uint8Array;
  /** For a bulk copy, whose length is on top of the stack. */
  readonly copy: Uint8Array;
}

function pricesIn(counter: number): Prices {
  const get = (index: number) => [0x23, ...numberBytes(index)];
  const set = (index: number) => [0x24, ...numberBytes(index)];
  const length = counter + 1;
  const trapIfTrue = [0x04, 0x40, 0x00, 0x0b];
  const turn = [
    // counter = 0
    ...[...get(counter), 0x45, ...trapIfTrue],
    // counter - 1
    ...[...get(counter), 0x41, 0x01, 0x6b, ...set(counter)],
  ];
  const copy = [
    ...set(length),
    // counter - (length >>> 5)
    ...[...get(counter), ...get(length), 0x41, 0x05, 0x76, 0x6b, ...set(counter)],
    // counter < 0
    ...[...get(counter), 0x41, 0x00, 0x48, ...trapIfTrue],
    ...get(length),
  ];
  return { turn: Uint8Array.from(turn), copy: Uint8Array.from(copy) };
}

const sectionBytes = (id: number, body: Uint8Array): Uint8Array =>
  Buffer.concat([Uint8Array.of(id, ...numberBytes(body.length)), body]);

/** A vector with more elements. */
function withElements(vector: Uint8Array, more: readonly (readonly number[])[]): Uint8Array {
  const reader = new Reader(vector);
  const count = reader.u32();
  const rest = vector.subarray(reader.at);
  return Buffer.concat([
    Uint8Array.from(numberBytes(count + more.length)),
    rest,
    Uint8Array.from(more.flat()),
  ]);
}

/** Number of imported globals, which have the first indexes. */
function importedGlobals(imports: Uint8Array | undefined): number {
  if (imports === undefined) return 0;
  const reader = new Reader(imports);
  let globals = 0;
  for (let left = reader.u32(); left > 0; left--) {
    reader.skip(reader.u32());
    reader.skip(reader.u32());
    const kind = reader.byte();
    if (kind === 0x00) reader.skipNumber();
    else if (kind === 0x01 || kind === 0x02) skipLimits(reader, kind === 0x01);
    else if (kind === 0x03) {
      reader.skip(2);
      globals++;
    } else throw new UnknownCode(`an import of kind ${kind}`);
  }
  return globals;
}

function skipLimits(reader: Reader, isTable: boolean): void {
  if (isTable) reader.skip(1);
  const hasMost = (reader.byte() & 1) === 1;
  reader.skipNumbers(hasMost ? 2 : 1);
}

function meteredCode(code: Uint8Array, prices: Prices): Uint8Array {
  const reader = new Reader(code);
  const count = reader.u32();
  const parts: Uint8Array[] = [Uint8Array.from(numberBytes(count))];
  for (let left = count; left > 0; left--) {
    const size = reader.u32();
    const body = meteredBody(code.subarray(reader.at, reader.at + size), prices);
    parts.push(Uint8Array.from(numberBytes(body.length)), body);
    reader.skip(size);
  }
  return Buffer.concat(parts);
}

/** Instruments one function: at its start, at each turn of a loop, and before each bulk copy. */
function meteredBody(body: Uint8Array, { turn, copy }: Prices): Uint8Array {
  const reader = new Reader(body);
  for (let groups = reader.u32(); groups > 0; groups--) {
    reader.skipNumber();
    reader.skip(1);
  }
  const parts: Uint8Array[] = [body.subarray(0, reader.at), turn];
  let from = reader.at;
  const insert = (price: Uint8Array, at: number) => {
    parts.push(body.subarray(from, at), price);
    from = at;
  };
  while (reader.at < body.length) {
    const start = reader.at;
    const opcode = reader.byte();
    if (opcode === MORE) {
      const which = reader.u32();
      skipMoreOperands(reader, which);
      if (which === COPY || which === FILL) insert(copy, start);
    } else {
      skipOperands(reader, opcode);
      if (opcode === LOOP) insert(turn, reader.at);
    }
  }
  parts.push(body.subarray(from));
  return Buffer.concat(parts);
}

/** Prefix of further opcodes. */
const MORE = 0xfc;
const COPY = 10;
const FILL = 11;
const LOOP = 0x03;

/** Section 5.4: the immediates of an opcode. */
function skipOperands(reader: Reader, opcode: number): void {
  // Numeric instructions, and those of the stack.
  if (opcode >= 0x45 && opcode <= 0xc4) return;
  if (opcode <= 0x01 || [0x05, 0x0b, 0x0f, 0x1a, 0x1b, 0xd1].includes(opcode)) return;
  // Blocks with their type, branches, calls, variables, tables, memory.
  if (opcode <= 0x04 || opcode === 0x0c || opcode === 0x0d || opcode === 0x10)
    return reader.skipNumber();
  if (opcode >= 0x20 && opcode <= 0x26) return reader.skipNumber();
  if (opcode === 0x0e) return reader.skipNumbers(reader.u32() + 1);
  if (opcode === 0x11 || (opcode >= 0x28 && opcode <= 0x3e)) return reader.skipNumbers(2);
  if (opcode === 0x3f || opcode === 0x40 || opcode === 0x41 || opcode === 0x42)
    return reader.skipNumber();
  if (opcode === 0x43) return reader.skip(4);
  if (opcode === 0x44) return reader.skip(8);
  if (opcode === 0x1c) return reader.skipNumbers(reader.u32());
  if (opcode === 0xd0 || opcode === 0xd2) return reader.skipNumber();
  throw new UnknownCode(`the opcode ${opcode.toString(16)}`);
}

/** Saturating conversions, and memory and tables as a whole. */
function skipMoreOperands(reader: Reader, opcode: number): void {
  if (opcode <= 7) return;
  if ([9, 11, 13, 15, 16, 17].includes(opcode)) return reader.skipNumber();
  if ([8, 10, 12, 14].includes(opcode)) return reader.skipNumbers(2);
  throw new UnknownCode(`the opcode fc ${opcode}`);
}
