// What other nodes of a fleet have seen, in the tables of the audit log and of last uses; each batch is written once.
import { sql } from "drizzle-orm";
import type { NodeActivity } from "../model/fact.ts";
import { AuditTable } from "./audit.ts";
import { MetaRows } from "./meta-rows.ts";
import { credentialUse, tokenUse } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

/** A node repeats only its last batch, until it knows that it was stored. */
const REMEMBERED_BATCHES = 8;

export class ActivityTables {
  readonly #context: TableContext;
  readonly #audit: AuditTable;
  readonly #meta: MetaRows;

  constructor(context: TableContext) {
    this.#context = context;
    this.#audit = new AuditTable(context.db);
    this.#meta = new MetaRows(context);
  }

  /** Does nothing for this node's own, which are stored, and for a batch that was written before. */
  write(activity: NodeActivity): void {
    const { batch_id, node_id, audit } = activity;
    if (this.#meta.get("instance_id") === node_id) return;
    const key = `activity ${node_id}`;
    const written = JSON.parse(this.#meta.get(key) ?? "[]") as readonly string[];
    if (written.includes(batch_id)) return;
    this.#context.transact(() => {
      this.#audit.append(audit);
      this.#writeUses(activity);
      this.#meta.set(key, JSON.stringify([...written, batch_id].slice(-REMEMBERED_BATCHES)));
    });
  }

  #writeUses({ tokens_used, credentials_used }: NodeActivity): void {
    const { db } = this.#context;
    // The newest time wins: RFC 3339 in UTC sorts like text.
    const set = { last_used_at: sql`max(last_used_at, excluded.last_used_at)` };
    for (const { id, last_used_at } of tokens_used)
      db.insert(tokenUse)
        .values({ token_id: id, last_used_at })
        .onConflictDoUpdate({ target: tokenUse.token_id, set })
        .run();
    for (const { id, last_used_at } of credentials_used)
      db.insert(credentialUse)
        .values({ credential_id: id, last_used_at })
        .onConflictDoUpdate({ target: credentialUse.credential_id, set })
        .run();
  }
}
