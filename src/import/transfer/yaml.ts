// Parses YAML, rejects what JSON does not have, and finds lines in it; js-yaml reads the text. Knows no resource.
import {
  COLLECTION_STYLE,
  CORE_SCHEMA,
  type Event,
  EVENT_ID,
  getScalarValue,
  loadAll,
  mergeTag,
  parseEvents,
  YAMLException,
} from "js-yaml";
import { ApiError, invalid } from "../../model/error.ts";
import { type FindPosition, type PathStep, positionOf } from "../../model/json-position.ts";

/** Far more than any valid file needs; recursion over a deeper one could overflow the stack. */
const MAX_DEPTH = 64;
/** What aliases may add to the members that fit into the text, where each takes a character: a few can expand to billions. */
const MAX_ALIASED_MEMBERS = 100_000;
const SCHEMA = CORE_SCHEMA.withTags(mergeTag);

const notYaml = (reason: string) =>
  new ApiError(400, `the configuration file is not valid YAML${reason}`);

const tooDeep = () =>
  new ApiError(400, `the configuration file is nested deeper than ${MAX_DEPTH} levels`);

/** The only document in the text, null for an empty text; throws a 400. */
export function parseYaml(text: string): unknown {
  const documents = load(text);
  if (documents.length > 1) throw notYaml(": it holds several documents");
  const [value = null] = documents;
  new ValueCheck(text.length + MAX_ALIASED_MEMBERS).check(value, "", 0);
  return value;
}

function load(text: string): unknown[] {
  try {
    return loadAll(text, { schema: SCHEMA, maxDepth: MAX_DEPTH });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { reason, mark } = error;
    if (reason.startsWith("nesting exceeded")) throw tooDeep();
    const offset = mark?.position ?? 0;
    const at = positionOf(text, offset);
    if (reason === "duplicated mapping key")
      throw invalid(
        scalarAt(text, offset),
        `is given twice (line ${at.line}, column ${at.column})`,
      );
    // Names of tags and aliases may be a password without quotation marks.
    const said = reason.replace(/:? ?(?:"[\s\S]*"|!<[\s\S]*>)/, "");
    throw notYaml(` at line ${at.line}, column ${at.column}: ${said}`);
  }
}

/** Rejects values that JSON does not have, and those that are much larger than their text. */
class ValueCheck {
  #budget: number;

  constructor(members: number) {
    this.#budget = members;
  }

  check(value: unknown, path: string, depth: number): void {
    // Circular aliases end here, too.
    if (depth > MAX_DEPTH) throw tooDeep();
    if (typeof value === "number" && !Number.isFinite(value))
      throw invalid(path, "is a number beyond what can be represented exactly");
    if (typeof value !== "object" || value === null) return;
    const members = Object.entries(value);
    this.#budget -= members.length;
    if (this.#budget < 0) throw notYaml(": excessive aliasing");
    for (const [name, member] of members) {
      const at = Array.isArray(value) ? `${path}[${name}]` : memberPath(path, name);
      // Copying a member of this name would change the prototype.
      if (name === "__proto__") throw invalid(at, "is not a known field");
      this.check(member, at, depth + 1);
    }
  }
}

const memberPath = (path: string, name: string) => (path === "" ? name : `${path}.${name}`);

/** Reads the text once, which must be valid. */
export function positionsInYaml(text: string): FindPosition {
  const events = parseEvents(text, { maxDepth: MAX_DEPTH });
  return (path) => {
    // The first event starts the document.
    let entry: Entry | null = { start: 0, value: 1 };
    let start = 0;
    for (const step of path) {
      entry = entryOf({ text, events }, entry.value, step);
      if (entry === null) break;
      if (entry.start !== -1) start = entry.start;
    }
    // The value of a text in quotes starts behind the first one.
    return positionOf(text, /["']/.test(text[start - 1] ?? "") ? start - 1 : start);
  };
}

/** A member or item: its offset, -1 when it is empty, and the index of the event that starts its value. */
interface Entry {
  readonly start: number;
  readonly value: number;
}

interface ParsedText {
  readonly text: string;
  readonly events: readonly Event[];
}

function entryOf({ text, events }: ParsedText, parent: number, step: PathStep): Entry | null {
  const owner = events[parent];
  if (owner?.type !== EVENT_ID.MAPPING && owner?.type !== EVENT_ID.SEQUENCE) return null;
  const isMapping = owner.type === EVENT_ID.MAPPING;
  const hasDashes = !isMapping && owner.style === COLLECTION_STYLE.BLOCK;
  let at = parent + 1;
  for (let index = 0; events[at]?.type !== EVENT_ID.POP; index++) {
    const first = events[at];
    if (isMapping) at = afterNode(events, at);
    if (step === (isMapping ? textOf(text, first) : index)) {
      const start = startOf(first);
      return { start: hasDashes ? text.lastIndexOf("-", start) : start, value: at };
    }
    at = afterNode(events, at);
  }
  return null;
}

/** Index of the first event after a node. */
function afterNode(events: readonly Event[], start: number): number {
  let depth = 0;
  let at = start;
  do {
    const type = events[at++]?.type;
    if (type === EVENT_ID.MAPPING || type === EVENT_ID.SEQUENCE) depth++;
    else if (type === EVENT_ID.POP) depth--;
  } while (depth > 0);
  return at;
}

/** The text of the scalar at an offset; empty when there is none. */
const scalarAt = (text: string, offset: number): string =>
  textOf(
    text,
    parseEvents(text, {}).find((event) => "valueStart" in event && startOf(event) === offset),
  );

const textOf = (text: string, event: Event | undefined): string =>
  event?.type === EVENT_ID.SCALAR ? getScalarValue(text, event) : "";

/** Offset of a node with its tag and anchor; -1 for one without text. */
function startOf(event: NodeOffsets | undefined): number {
  const { tagStart, anchorStart, valueStart, start } = event ?? {};
  return [tagStart, anchorStart, valueStart, start].find((offset = -1) => offset !== -1) ?? -1;
}

interface NodeOffsets {
  readonly type?: number;
  readonly tagStart?: number;
  readonly anchorStart?: number;
  readonly valueStart?: number;
  readonly start?: number;
}
