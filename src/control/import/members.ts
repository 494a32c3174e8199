// Reads an object of another program's configuration and remembers which members nobody has read; knows no program.
import { invalid } from "../../model/error.ts";
import { type Document, isDocument } from "../body.ts";
import type { Report } from "./report.ts";

export interface Place {
  /** In the file: `services[2].routes[0]`. */
  readonly path: string;
  /** In words: `route "shop"`. */
  readonly label: string;
  /** From what the label names to here: `config.redis`. */
  readonly inner: string;
}

/** Getters throw a 400 that names the place when a member is of another type. Absent and null are the same: null. */
export class Members {
  readonly #value: Document;
  readonly #read = new Set<string>();
  /** Each is one object, however often it is asked for: what one reader has read, another need not. */
  readonly #objects = new Map<string, Members>();
  readonly report: Report;
  #place: Place;

  constructor(value: unknown, place: Place, report: Report) {
    if (!isDocument(value)) throw invalid(place.path, "must be an object");
    this.#value = value;
    this.#place = place;
    this.report = report;
    report.watch(this);
  }

  get label(): string {
    return this.#place.label;
  }

  get path(): string {
    return this.#place.path;
  }

  get names(): readonly string[] {
    return Object.keys(this.#value);
  }

  /** From now on entries of the report speak of it as this. */
  call(label: string): void {
    this.#place = { ...this.#place, label, inner: "" };
  }

  /** Whether it is there, whatever it is. */
  has(name: string): boolean {
    return Object.hasOwn(this.#value, name) && this.#value[name] !== null;
  }

  raw(name: string): unknown {
    this.#read.add(name);
    return (Object.hasOwn(this.#value, name) ? this.#value[name] : null) ?? null;
  }

  text(name: string): string | null {
    const value = this.raw(name);
    if (value === null || typeof value === "string") return value;
    throw invalid(this.#at(name), "must be text");
  }

  number(name: string): number | null {
    const value = this.raw(name);
    if (value === null || typeof value === "number") return value;
    throw invalid(this.#at(name), "must be a number");
  }

  flag(name: string): boolean | null {
    const value = this.raw(name);
    if (value === null || typeof value === "boolean") return value;
    throw invalid(this.#at(name), "must be true or false");
  }

  list(name: string): readonly unknown[] {
    const value = this.raw(name) ?? [];
    if (Array.isArray(value)) return value;
    throw invalid(this.#at(name), "must be a list");
  }

  texts(name: string): readonly string[] {
    return this.list(name).map((item, index) => {
      if (typeof item === "string") return item;
      throw invalid(`${this.#at(name)}[${index}]`, "must be text");
    });
  }

  numbers(name: string): readonly number[] {
    return this.list(name).map((item, index) => {
      if (typeof item === "number") return item;
      throw invalid(`${this.#at(name)}[${index}]`, "must be a number");
    });
  }

  object(name: string): Members | null {
    const value = this.raw(name);
    return value === null ? null : this.#inner(name, value);
  }

  /** The same object as if one member were not there. */
  copyWithout(name: string): Members {
    const rest = Object.entries(this.#value).filter(([other]) => other !== name);
    for (const [other] of rest) this.#read.add(other);
    return new Members(Object.fromEntries(rest), this.#place, this.report);
  }

  /** Stands for an object that is not there. */
  empty(name: string): Members {
    return new Members({}, this.#below(name), this.report);
  }

  objects(name: string): readonly Members[] {
    return this.list(name).map((item, index) => this.#inner(`${name}[${index}]`, item));
  }

  /** A number that the gateway takes in these bounds; says so when it had to be moved. */
  bounded(name: string, { min, max }: { readonly min: number; readonly max: number }) {
    const value = this.number(name);
    if (value === null) return null;
    const fitting = Math.min(max, Math.max(min, Math.round(value)));
    if (fitting !== value) this.changed(name, `${value} became ${fitting}, the nearest possible`);
    return fitting;
  }

  /** Says why a member is not carried over, unless it says no more than `harmless` or nothing at all. */
  leaveOut(name: string, why: string, harmless?: unknown): void {
    const value = this.raw(name);
    if (isEmpty(value) || (harmless !== undefined && Bun.deepEquals(value, harmless))) return;
    this.report.leftOut(this.#named(name), why);
  }

  changed(name: string, why: string): void {
    this.report.changed(this.#named(name), why);
  }

  /** Leaves out all of it. */
  drop(why: string): void {
    this.ignoreRest();
    const { label, inner } = this.#place;
    this.report.leftOut(inner === "" ? label : `${label}: ${inner}`, why);
  }

  /** What was not read says nothing that matters. */
  ignoreRest(): void {
    for (const name of Object.keys(this.#value)) this.#read.add(name);
    for (const inner of this.#objects.values()) inner.ignoreRest();
  }

  /** Whether something that nobody has read says more than no. */
  hasUnknown(): boolean {
    return Object.entries(this.#value).some(
      ([name, value]) => !this.#read.has(name) && !isEmpty(value) && value !== 0 && value !== false,
    );
  }

  unread(): readonly string[] {
    return Object.entries(this.#value)
      .filter(([name, value]) => !this.#read.has(name) && !isEmpty(value))
      .map(([name]) => this.#named(name));
  }

  #inner(name: string, value: unknown): Members {
    const known = this.#objects.get(name);
    if (known !== undefined) return known;
    const made = new Members(value, this.#below(name), this.report);
    this.#objects.set(name, made);
    return made;
  }

  #named(name: string): string {
    const { label, inner } = this.#place;
    const member = inner === "" ? name : `${inner}.${name}`;
    return label === "" ? member : `${label}: ${member}`;
  }

  #at(name: string): string {
    return this.#place.path === "" ? name : `${this.#place.path}.${name}`;
  }

  #below(name: string): Place {
    const { label, inner } = this.#place;
    return { path: this.#at(name), label, inner: inner === "" ? name : `${inner}.${name}` };
  }
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return isDocument(value) && Object.keys(value).length === 0;
}
