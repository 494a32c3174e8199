// Writes the header blocks of responses; knows no stream.
import { FieldWriter, literal, type WrittenName } from "../../http2/field-writer.ts";
import { STATIC_TABLE } from "../../http2/static-table.ts";
import type { OutgoingHead } from "../client-stream.ts";
import { dateValue } from "../response-date.ts";
import type { HeadEnd } from "./stream.ts";

const statuses = new Map(
  STATIC_TABLE.flatMap(({ name, value }, at) =>
    name === ":status" ? [[Number(value), 0x81 + at] as const] : [],
  ),
);

const STATUS = literal(":status");
const DATE = literal("date");
const LENGTH = literal("content-length");
const TRAILER = literal("trailer");

/** One for each thread: a block is sent before the next one is written. */
export class BlockWriter extends FieldWriter {
  /** The head has a Date, and one of the gateway's own Alt-Svc. */
  #hasDate = false;
  #hasAltSvc = false;
  #dropsLength = false;

  /**
   * A head with its fields. `length`: an additional Content-Length, -1: none. `altSvc`: a line in the place of what the target
   * announces; empty: there is none.
   */
  head(head: OutgoingHead, { length, isLast }: HeadEnd, altSvc: string): void {
    const { status, lines, trailer = null } = head;
    this.status(status);
    const hasAltSvc = altSvc !== "";
    // RFC 9110 section 8.6: no length with 204.
    this.#hasDate = false;
    this.#hasAltSvc = hasAltSvc;
    this.#dropsLength = status === 204;
    this.lines(lines);
    this.#hasAltSvc = false;
    this.#dropsLength = false;
    if (hasAltSvc) this.lines(altSvc);
    if (!this.#hasDate) this.field(DATE, dateValue());
    if (length >= 0) this.field(LENGTH, String(length));
    // Trailers may follow a body.
    if (trailer !== null && !isLast) this.field(TRAILER, trailer);
  }

  status(status: number): void {
    const known = statuses.get(status);
    if (known === undefined) this.field(STATUS, String(status));
    else this.indexed(known);
  }

  protected override takes({ prefix, kind }: WrittenName): boolean {
    if (kind === "date") this.#hasDate = true;
    const isDropped =
      (this.#hasAltSvc && kind === "alt-svc") || (this.#dropsLength && kind === "content-length");
    return prefix.length > 0 && !isDropped;
  }
}
