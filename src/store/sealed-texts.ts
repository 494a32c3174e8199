// Finds encrypted values in every table, independent of the kind of object, and brings them under another key; knows no key.
import type { Database } from "bun:sqlite";
import type { Fact } from "../model/fact.ts";
import { StoreError } from "./error.ts";

/** In a JSON document: the quotation marks exclude lookalikes inside of user texts. */
const SEALED_MEMBER = /"sealed(?:_[a-z]+)*":"sealed:1:([0-9a-f]{8}):/g;
/** As the whole of a column. */
const SEALED_COLUMN = /^sealed:1:([0-9a-f]{8}):/;
/** The start decrypts nothing of it, and it may be long. */
const HISTORY = "revisions";
/** Holds no secret in any form, and its rows cannot be changed. */
const AUDIT = "audit";

export type KeyFact = Extract<Fact, { readonly kind: "secret_key" }>;

/** Another secret key: what is stored with it, and what happens afterwards. */
export interface KeyReplacement {
  readonly keyId: string;
  /** Id of the key before it. */
  readonly formerKeyId: string;
  /** An empty value under the new key: tells the next start which key is valid, also where no secret is stored. */
  readonly proof: string;
  /** The text with its values under the new key. */
  replace(text: string): string;
  /** Everything is stored under the new key. Never throws. */
  finish(): void;
}

/** Who has the secret key. */
export interface KeyKeeper {
  /** Makes a new key durable beside the present one; null: it is the present one. Throws a StoreError. */
  begin(fact: KeyFact): KeyReplacement | null;
}

interface StoredKeyParts {
  readonly database: Database;
  readonly meta: { getMeta(key: string): string | null; setMeta(key: string, value: string): void };
  /** Runs `write` all or nothing. */
  readonly transact: (write: () => void) => void;
}

/** The secret key as the database knows it. */
export class StoredKey {
  readonly #parts: StoredKeyParts;
  /** Null: the key cannot be replaced. */
  keeper: KeyKeeper | null = null;

  constructor(parts: StoredKeyParts) {
    this.#parts = parts;
  }

  /** Id of the key before the present one; null: none is known. */
  get formerId(): string | null {
    return this.#parts.meta.getMeta("former_key_id");
  }

  /**
   * Brings everything under the key that one of the facts brings. Call it inside a transaction, and what it returns afterwards.
   * Throws a StoreError.
   */
  apply(facts: readonly Fact[]): () => void {
    const fact = facts.find(({ kind }) => kind === "secret_key") as KeyFact | undefined;
    if (fact === undefined) return () => {};
    if (this.keeper === null) throw new StoreError("the secret key is not open");
    const replacement = this.keeper.begin(fact);
    if (replacement === null) return () => {};
    this.#write(replacement);
    return () => replacement.finish();
  }

  #write(replacement: KeyReplacement): void {
    const { database, meta } = this.#parts;
    const { keyId, formerKeyId, proof } = replacement;
    replaceSealed(database, (text) => replacement.replace(text));
    meta.setMeta("secret_key_proof", proof);
    meta.setMeta("former_key_id", formerKeyId);
    if ([...sealedKeyIds(database)].some((id) => id !== keyId))
      throw new StoreError("a stored secret is damaged and cannot be decrypted");
  }

  /** Throws a StoreError when a stored value cannot be brought under the key of `fact`; changes nothing. */
  rehearse(fact: KeyFact): void {
    const rolledBack = new Error("rolled back");
    try {
      this.#parts.transact(() => {
        this.apply([fact]);
        throw rolledBack;
      });
    } catch (error) {
      if (error !== rolledBack) throw error;
    }
  }
}

interface TextColumn {
  readonly table: string;
  readonly column: string;
}

/** Ids of the keys that stored values are encrypted with: one, unless something is wrong. */
export function sealedKeyIds(database: Database): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { table, column } of textColumns(database)) {
    if (table === HISTORY) continue;
    for (const { text } of rowsWithSealed(database, { table, column })) {
      const whole = SEALED_COLUMN.exec(text);
      for (const [, id = ""] of whole === null ? text.matchAll(SEALED_MEMBER) : [whole])
        ids.add(id);
    }
  }
  return ids;
}

/** Passes every text with an encrypted value to `replace`, history included. */
function replaceSealed(database: Database, replace: (text: string) => string): void {
  for (const { table, column } of textColumns(database)) {
    const update = database.prepare(`UPDATE "${table}" SET "${column}" = ? WHERE rowid = ?`);
    for (const { id, text } of rowsWithSealed(database, { table, column })) {
      const replaced = replace(text);
      if (replaced !== text) update.run(replaced, id);
    }
  }
}

/** Reads all rows first, because the caller writes rows while it iterates. */
function rowsWithSealed(database: Database, { table, column }: TextColumn) {
  return database
    .query<{ id: number; text: string }, []>(
      `SELECT rowid AS id, "${column}" AS text FROM "${table}" WHERE instr("${column}", 'sealed:1:') > 0`,
    )
    .all();
}

function textColumns(database: Database): TextColumn[] {
  const tables = database
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'",
    )
    .all();
  const searched = tables.filter(({ name }) => name !== AUDIT);
  return searched.flatMap(({ name: table }) =>
    database
      .query<{ name: string; type: string }, []>(
        `SELECT name, type FROM pragma_table_info('${table}')`,
      )
      .all()
      .filter(({ type }) => type.toLowerCase() === "text")
      .map(({ name: column }) => ({ table, column })),
  );
}
