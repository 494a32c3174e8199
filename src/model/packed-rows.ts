// Very many objects in a few megabytes: each is stored as text and decoded on every read; knows no collection.
import type { IndexOf } from "./rows.ts";
import type { Identity } from "./fields.ts";
import type { Rows } from "./rows.ts";

/** Rows lie in blocks of this size, so that adding one never moves the others. A larger row has a block of its own. */
const BLOCK_BITS = 20;
const BLOCK = 2 ** BLOCK_BITS;
/** The length of a row stands before it. */
const PREFIX = 4;
/** Bytes for each UTF-16 unit, at most. */
const MAX_BYTES_OF_UNIT = 3;
/** A row begins with `["`, then comes its id. */
const ID_AT = 2;
const QUOTE = 0x22;

/** Stands for every empty list: objects are never changed in place. */
const EMPTY: readonly never[] = Object.freeze([]);

/** What a member is when it is not written into the row. `written`: it is. */
type Usual = "written" | "null" | "true" | "false" | "text" | "list" | "created";

/** The members that a row has, in their order. */
interface Shape {
  readonly names: readonly string[];
  readonly usual: readonly Usual[];
  /** The time of the last change comes after that of creation, and so need not be written when they are the same. */
  readonly isLater: boolean;
}

/** Objects in the order in which they were added; no id comes twice. What was added is not changed. */
export class PackedRows<T extends Identity> implements Rows<T> {
  readonly #blocks: Buffer[] = [];
  /** Where in the last block the next row goes. */
  #used = BLOCK;
  #places = new Uint32Array(1024);
  #size = 0;
  readonly #shapes: Shape[] = [];
  readonly #shapeNumbers = new Map<string, number>();
  #last = 0;
  readonly #ids = new HashIndex();
  readonly #indexes: ReadonlyMap<IndexOf<T>, HashIndex>;
  #latest = 0;
  #latestText = "";

  constructor(indexes: readonly IndexOf<T>[]) {
    this.#indexes = new Map(indexes.map((index) => [index, new HashIndex()]));
  }

  static of<T extends Identity>(objects: Iterable<T>, indexes: readonly IndexOf<T>[]) {
    const rows = new PackedRows(indexes);
    for (const object of objects) rows.add(object);
    return rows;
  }

  get size(): number {
    return this.#size;
  }

  withRows(objects: Iterable<T>): PackedRows<T> {
    return PackedRows.of(objects, [...this.#indexes.keys()]);
  }

  get latest(): number {
    return this.#latest;
  }

  /** To be called before anybody else has the rows. */
  add(object: T): void {
    const row = this.#size++;
    if (row >= this.#places.length) this.#places = grown(this.#places);
    this.#places[row] = this.#write(this.#encode(object));
    this.#ids.add(row, object.id);
    for (const [indexOf, index] of this.#indexes) index.add(row, indexOf(object));
    this.#see(object.created_at);
    this.#see(object.updated_at);
  }

  at(row: number): T {
    return this.#decode(this.#text(row));
  }

  *values(): Generator<T> {
    for (let row = 0; row < this.#size; row++) yield this.at(row);
  }

  rowOf(id: string): number {
    for (const row of this.#ids.rows(id)) if (this.#hasId(row, id)) return row;
    return -1;
  }

  find(indexOf: IndexOf<T>, value: string, except: string | null): T[] | undefined {
    const index = this.#indexes.get(indexOf);
    if (index === undefined) return undefined;
    const found: T[] = [];
    for (const row of index.rows(value)) {
      if (except !== null && this.#hasId(row, except)) continue;
      const object = this.at(row);
      if (indexOf(object) === value) found.push(object);
    }
    return found;
  }

  /** Most rows repeat a time or have a new one just once. */
  #see(time: string): void {
    if (time === this.#latestText) return;
    const at = Date.parse(time) || 0;
    if (at <= this.#latest) return;
    this.#latest = at;
    this.#latestText = time;
  }

  #encode(object: T): string {
    const members = object as unknown as Readonly<Record<string, unknown>>;
    const values: unknown[] = [object.id, this.#last];
    const last = this.#shapes[this.#last];
    // Most rows have the shape of the one before.
    if (last === undefined || !hasShape(last, members, values)) {
      const shape = shapeOf(members);
      const key = JSON.stringify(shape);
      this.#last = this.#shapeNumbers.get(key) ?? this.#shapes.push(shape) - 1;
      this.#shapeNumbers.set(key, this.#last);
      values.length = 0;
      values.push(object.id, this.#last);
      hasShape(shape, members, values);
    }
    return JSON.stringify(values);
  }

  #decode(text: string): T {
    const values = JSON.parse(text) as unknown[];
    const { names, usual } = this.#shapes[values[1] as number] as Shape;
    const object: Record<string, unknown> = { id: values[0] };
    let next = 2;
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string;
      const kind = usual[index] as Usual;
      if (kind === "written") object[name] = values[next++];
      else if (kind === "created") object[name] = object["created_at"];
      else object[name] = usualValues[kind];
    }
    return object as unknown as T;
  }

  #write(text: string): number {
    const room = PREFIX + text.length * MAX_BYTES_OF_UNIT;
    if (this.#used + room > BLOCK) {
      this.#blocks.push(Buffer.allocUnsafeSlow(Math.max(BLOCK, room)));
      this.#used = 0;
    }
    const number = this.#blocks.length - 1;
    const block = this.#blocks[number] as Buffer;
    const start = this.#used;
    const length = block.write(text, start + PREFIX, "utf8");
    block.writeUInt32LE(length, start);
    this.#used = start + PREFIX + length;
    return number * BLOCK + start;
  }

  #text(row: number): string {
    const { block, start } = this.#placeOf(row);
    return block.toString("utf8", start, start + block.readUInt32LE(start - PREFIX));
  }

  #hasId(row: number, id: string): boolean {
    const { block, start } = this.#placeOf(row);
    const from = start + ID_AT;
    return (
      block[from + id.length] === QUOTE && block.toString("latin1", from, from + id.length) === id
    );
  }

  #placeOf(row: number) {
    const place = this.#places[row] ?? 0;
    return {
      block: this.#blocks[place >>> BLOCK_BITS] as Buffer,
      start: (place & (BLOCK - 1)) + PREFIX,
    };
  }
}

const usualValues: Readonly<Record<Exclude<Usual, "written" | "created">, unknown>> = {
  null: null,
  true: true,
  false: false,
  text: "",
  list: EMPTY,
};

function shapeOf(members: Readonly<Record<string, unknown>>): Shape {
  const names = Object.keys(members).filter((name) => name !== "id");
  const isLater = names.indexOf("updated_at") > names.indexOf("created_at");
  const usual = names.map((name): Usual => {
    const value = members[name];
    const isSame = isLater && name === "updated_at" && value === members["created_at"];
    return isSame ? "created" : usualOf(value);
  });
  return { names, usual, isLater };
}

/** Whether an object has these members; those that are to be written are added to `values`. */
function hasShape(
  { names, usual, isLater }: Shape,
  members: Readonly<Record<string, unknown>>,
  values: unknown[],
): boolean {
  let index = 0;
  for (const name in members) {
    if (name === "id") continue;
    if (names[index] !== name) return false;
    const value = members[name];
    const kind = usual[index];
    if (isLater && name === "updated_at") {
      if ((value === members["created_at"]) !== (kind === "created")) return false;
      if (kind === "written") values.push(value);
    } else if (usualOf(value) !== kind) return false;
    else if (kind === "written") values.push(value);
    index++;
  }
  return index === names.length;
}

function usualOf(value: unknown): Usual {
  if (typeof value === "string") return value === "" ? "text" : "written";
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  return Array.isArray(value) && value.length === 0 ? "list" : "written";
}

/** Rows by the hash of a text; those of one hash are a chain, the newest first. */
class HashIndex {
  #heads = new Int32Array(1024);
  #hashes = new Int32Array(1024);
  /** 0: the end of the chain; others are one more than the row. */
  #next = new Int32Array(1024);
  #rows = 0;

  /** Rows come one after the other; null: the row is not found by this. */
  add(row: number, text: string | null): void {
    if (row >= this.#next.length) {
      this.#hashes = grown(this.#hashes);
      this.#next = grown(this.#next);
    }
    this.#rows = row + 1;
    if (text === null) {
      this.#next[row] = NOWHERE;
      return;
    }
    this.#hashes[row] = hashOf(text);
    if (row >= this.#heads.length) this.#spread();
    else this.#hang(row);
  }

  /** Those with the hash of the text, the youngest first. */
  rows(text: string): readonly number[] {
    const hash = hashOf(text);
    let at = this.#heads[hash & (this.#heads.length - 1)] ?? 0;
    const found: number[] = [];
    while (at > 0) {
      if (this.#hashes[at - 1] === hash) found.push(at - 1);
      at = this.#next[at - 1] ?? 0;
    }
    return found;
  }

  #hang(row: number): void {
    const slot = (this.#hashes[row] ?? 0) & (this.#heads.length - 1);
    this.#next[row] = this.#heads[slot] ?? 0;
    this.#heads[slot] = row + 1;
  }

  #spread(): void {
    this.#heads = new Int32Array(this.#heads.length * 2);
    for (let row = 0; row < this.#rows; row++) if (this.#next[row] !== NOWHERE) this.#hang(row);
  }
}

const NOWHERE = -1;

const hashOf = (text: string): number => Bun.hash.xxHash32(text) | 0;

function grown<A extends Int32Array | Uint32Array>(array: A): A {
  const Kind = array.constructor as new (length: number) => A;
  const larger = new Kind(Math.ceil(array.length * 1.5));
  larger.set(array);
  return larger;
}
