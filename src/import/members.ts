// Reads an object of another program's configuration and lists the members that no converter has read; knows no program.
import { invalid } from "../model/error.ts";
import { type Document, isDocument } from "../control/body.ts";
import type { Report } from "./report.ts";

export interface MemberLocation {
  /** Path in the file: `services[2].routes[0]`. */
  readonly path: string;
  /** Name in the report: `route "shop"`. */
  readonly label: string;
  /** Path below the labeled object: `config.redis`. */
  readonly inner: string;
}

/** `${{ env "DECK_PORT" }}` */
const ENVIRONMENT = /^\$\{\{\s*env\s+["']?([A-Za-z_]\w*)["']?\s*\}\}$/;

/** Getters throw a 400 that names the path when a member has another type. Absent members are null. */
export class Members {
  readonly #value: Document;
  readonly #read = new Set<string>();
  /** Members whose value is not in the file. */
  readonly #unknown = new Set<string>();
  /** One object per member, so that all readers share the list of read members. */
  readonly #objects = new Map<string, Members>();
  readonly report: Report;
  #location: MemberLocation;

  constructor(value: unknown, location: MemberLocation, report: Report) {
    if (!isDocument(value)) throw invalid(location.path, "must be an object");
    this.#value = value;
    this.#location = location;
    this.report = report;
    report.watch(this);
  }

  get label(): string {
    return this.#location.label;
  }

  get path(): string {
    return this.#location.path;
  }

  get names(): readonly string[] {
    return Object.keys(this.#value);
  }

  /** Sets the name for later entries of the report. */
  setLabel(label: string): void {
    this.#location = { ...this.#location, label, inner: "" };
  }

  /** Whether the member exists and is not null; does not mark it as read. */
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
    if (this.#isUnknown(name, value)) return null;
    throw invalid(this.#at(name), "must be a number");
  }

  flag(name: string): boolean | null {
    const value = this.raw(name);
    if (value === null || typeof value === "boolean") return value;
    if (this.#isUnknown(name, value)) return null;
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

  /** The same object without one member. */
  copyWithout(name: string): Members {
    const rest = Object.entries(this.#value).filter(([other]) => other !== name);
    for (const [other] of rest) this.#read.add(other);
    return new Members(Object.fromEntries(rest), this.#location, this.report);
  }

  /** An empty object in location of an absent one. */
  empty(name: string): Members {
    return new Members({}, this.#below(name), this.report);
  }

  objects(name: string): readonly Members[] {
    return this.list(name).map((item, index) => this.#inner(`${name}[${index}]`, item));
  }

  /** A number clamped to the bounds; reports a changed value. */
  bounded(name: string, { min, max }: { readonly min: number; readonly max: number }) {
    const value = this.number(name);
    if (value === null) return null;
    const fitting = Math.min(max, Math.max(min, Math.round(value)));
    if (fitting !== value)
      this.changed(name, `${value} became ${fitting}, the nearest valid value`);
    return fitting;
  }

  /** Reports why a member is not imported, unless it is empty or equals `harmless`. */
  omit(name: string, why: string, harmless?: unknown): void {
    const value = this.raw(name);
    if (isEmpty(value) || (harmless !== undefined && Bun.deepEquals(value, harmless))) return;
    this.report.omitted(this.#named(name), why);
  }

  changed(name: string, why: string): void {
    this.report.changed(this.#named(name), why);
  }

  /** Omits the whole object. */
  drop(why: string): void {
    this.ignoreRest();
    const { label, inner } = this.#location;
    this.report.omitted(inner === "" ? label : `${label}: ${inner}`, why);
  }

  /** Marks all members as read: the unread ones do not matter. */
  ignoreRest(): void {
    for (const name of Object.keys(this.#value)) this.#read.add(name);
    for (const inner of this.#objects.values()) inner.ignoreRest();
  }

  /** Whether an unread member is set to anything but false, zero or empty. */
  hasUnknown(): boolean {
    if (this.#unknown.size > 0) return true;
    return Object.entries(this.#value).some(
      ([name, value]) => !this.#read.has(name) && !isEmpty(value) && value !== 0 && value !== false,
    );
  }

  /** Whether the value is one of the environment of decK, which is not in the file. */
  #isUnknown(name: string, value: unknown): boolean {
    const [, variable] = (typeof value === "string" ? ENVIRONMENT.exec(value) : null) ?? [];
    if (variable === undefined) return false;
    this.#unknown.add(name);
    this.report.omitted(
      this.#named(name),
      `the value of ${variable} is not in the file: the default applies`,
    );
    return true;
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
    const { label, inner } = this.#location;
    const member = inner === "" ? name : `${inner}.${name}`;
    return label === "" ? member : `${label}: ${member}`;
  }

  #at(name: string): string {
    return this.#location.path === "" ? name : `${this.#location.path}.${name}`;
  }

  #below(name: string): MemberLocation {
    const { label, inner } = this.#location;
    return { path: this.#at(name), label, inner: inner === "" ? name : `${inner}.${name}` };
  }
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return isDocument(value) && Object.keys(value).length === 0;
}
