// Parses message signatures from header fields, and builds the signature base (RFC 9421 section 2.5); knows no key.
import {
  type BareItem,
  type Item,
  parseDictionary,
  serializeInnerList,
  serializeItem,
} from "structured-headers";
import { componentValue, isInnerList, type SignedMessage } from "./components.ts";

export interface MessageSignature {
  /** The covered components, in order. */
  readonly components: readonly Item[];
  readonly keyId: string | null;
  readonly algorithm: string | null;
  /** Seconds since 1970. */
  readonly created: number | null;
  readonly expires: number | null;
  readonly nonce: string | null;
  readonly value: Uint8Array;
  /** The value of `@signature-params`. */
  readonly parameters: string;
}

/** Bounds; intermediaries may add signatures of their own. */
const MAX_SIGNATURES = 5;
const MAX_COMPONENTS = 50;

/** The signatures in both fields, in order; null when the fields are malformed or too large. */
export function readSignatures(input: string, signature: string): MessageSignature[] | null {
  try {
    const inputs = parseDictionary(input);
    const values = parseDictionary(signature);
    if (inputs.size > MAX_SIGNATURES || values.size > MAX_SIGNATURES) return null;
    const found: MessageSignature[] = [];
    for (const [label, member] of inputs) {
      const value = values.get(label)?.[0];
      if (value === undefined) continue;
      if (!isInnerList(member) || !(value instanceof ArrayBuffer)) return null;
      const [components, parameters] = member;
      if (components.length > MAX_COMPONENTS || !areDistinct(components)) return null;
      const known = knownParameters(parameters);
      if (known === null) return null;
      found.push({
        ...known,
        components,
        value: new Uint8Array(value),
        parameters: serializeInnerList(member),
      });
    }
    return found;
  } catch {
    return null;
  }
}

/** Section 2.5: each component once. */
const areDistinct = (components: readonly Item[]): boolean =>
  new Set(components.map((component) => serializeItem(component))).size === components.length;

/** Section 2.3; null when one is of the wrong type. */
function knownParameters(parameters: ReadonlyMap<string, BareItem>) {
  const text = (name: string) => parameters.get(name) ?? null;
  const [keyId, algorithm, nonce] = [text("keyid"), text("alg"), text("nonce")];
  const [created, expires] = [text("created"), text("expires")];
  const isText = (value: BareItem | null) => value === null || typeof value === "string";
  const isTime = (value: BareItem | null) => value === null || Number.isSafeInteger(value);
  if (![keyId, algorithm, nonce].every(isText) || ![created, expires].every(isTime)) return null;
  return { keyId, algorithm, nonce, created, expires } as Pick<
    MessageSignature,
    "keyId" | "algorithm" | "nonce" | "created" | "expires"
  >;
}

/** Whether the component is covered without parameters. */
export const covers = ({ components }: MessageSignature, name: string): boolean =>
  components.some(([covered, parameters]) => covered === name && parameters.size === 0);

/** The signature base as bytes; null when the request lacks a covered component. */
export function signatureBase(
  { components, parameters }: Pick<MessageSignature, "components" | "parameters">,
  message: SignedMessage,
): Uint8Array | null {
  let base = "";
  for (const component of components) {
    const value = componentValue(component, message);
    // Values have no line ends, or one component could look like two.
    if (value === null || /[\r\n]/.test(value)) return null;
    base += `${serializeItem(component)}: ${value}\n`;
  }
  return Buffer.from(`${base}"@signature-params": ${parameters}`, "latin1");
}
