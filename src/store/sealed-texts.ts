// Finds encrypted values in every table, independent of the kind of object; knows no key.
import type { Database } from "bun:sqlite";

/** In a JSON document: the quotation marks exclude lookalikes inside of user texts. */
const SEALED_MEMBER = /"sealed(?:_[a-z]+)*":"sealed:1:([0-9a-f]{8}):/g;
/** As the whole of a column. */
const SEALED_COLUMN = /^sealed:1:([0-9a-f]{8}):/;
/** The start decrypts nothing of it, and it may be long. */
const HISTORY = "revisions";
/** Holds no secret in any form, and its rows cannot be changed. */
const AUDIT = "audit";

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

/** Passes every text with an encrypted value to `replace`, history included. Call it inside a transaction. */
export function replaceSealed(database: Database, replace: (text: string) => string): void {
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
