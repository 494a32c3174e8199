// A reusable byte buffer for lines, which avoids garbage; knows no format.

const NO_BYTES = Buffer.alloc(0);
const FIRST_BYTES = 65_536;
/** Largest memory to retain while empty. */
const KEPT_BYTES = 2_097_152;
/** Longest number. */
const NUMBER_BYTES = 32;

const QUOTE = 34;
const POINT = 46;
const ZERO = 48;
const BACKSLASH = 92;
const NULL = Buffer.from("null");

export class LineBuffer {
  #bytes: Buffer = NO_BYTES;
  #end = 0;

  /** Used bytes. */
  get length(): number {
    return this.#end;
  }

  /** Truncates to so many bytes. */
  cut(length: number): void {
    this.#end = length;
  }

  /** The content, valid until the next write. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#end);
  }

  toString(): string {
    return this.#bytes.toString("utf8", 0, this.#end);
  }

  /** Empties the buffer, and releases unusually large memory. */
  clear(): void {
    this.#end = 0;
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = NO_BYTES;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#end++] = value;
  }

  copy(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** In UTF-8. */
  text(text: string): void {
    this.#reserve(text.length * 3);
    this.#end += this.#bytes.write(text, this.#end, "utf8");
  }

  /** Writes a short text of printable ASCII without quotes and backslashes; false: another text, nothing is written. */
  plain(text: string): boolean {
    const { length } = text;
    this.#reserve(length);
    const bytes = this.#bytes;
    const end = this.#end;
    for (let at = 0; at < length; at++) {
      const code = text.charCodeAt(at);
      if (code < 32 || code > 126 || code === QUOTE || code === BACKSLASH) return false;
      bytes[end + at] = code;
    }
    this.#end = end + length;
    return true;
  }

  /** As JSON writes the number of milliseconds, with at most three digits behind the point. */
  milliseconds(value: number | null): void {
    if (value === null) {
      this.copy(NULL);
      return;
    }
    const all = Math.round(value * 1000);
    if (!(all >= 0 && all <= Number.MAX_SAFE_INTEGER)) {
      this.text(JSON.stringify(all / 1000));
      return;
    }
    this.#reserve(NUMBER_BYTES);
    const whole = Math.floor(all / 1000);
    if (whole < 10) this.#bytes[this.#end++] = ZERO + whole;
    else this.#digits(whole);
    this.#thousandths((all - whole * 1000) | 0);
  }

  #digits(value: number): void {
    let count = 1;
    for (let power = 10; power <= value; power *= 10) count++;
    let rest = value;
    for (let at = this.#end + count - 1; at >= this.#end; at--) {
      const next = Math.floor(rest / 10);
      this.#bytes[at] = ZERO + rest - next * 10;
      rest = next;
    }
    this.#end += count;
  }

  /** Without zeros at the end. Whole numbers of 32 bits: dividing others takes three times as long. */
  #thousandths(value: number): void {
    if (value === 0) return;
    const bytes = this.#bytes;
    const tenths = (value / 100) | 0;
    const hundredths = (value / 10) | 0;
    bytes[this.#end++] = POINT;
    bytes[this.#end++] = ZERO + tenths;
    if (tenths * 100 === value) return;
    bytes[this.#end++] = ZERO + hundredths - tenths * 10;
    if (hundredths * 10 === value) return;
    bytes[this.#end++] = ZERO + value - hundredths * 10;
  }

  #reserve(more: number): void {
    if (this.#end + more > this.#bytes.length) this.#grow(this.#end + more);
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}
