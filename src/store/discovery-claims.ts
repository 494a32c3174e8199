// What containers have claimed, by source; knows no container.
import { and, eq, sql } from "drizzle-orm";
import type { Fact, StoredClaim } from "../model/fact.ts";
import { discoveryClaims } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

type ClaimsFact = Extract<Fact, { kind: "discovery_claims" }>;

export class DiscoveryClaimTable {
  readonly #context: TableContext;

  constructor(context: TableContext) {
    this.#context = context;
  }

  load(source: string): readonly StoredClaim[] {
    const { kind, name, holder, content, gone_at } = discoveryClaims;
    return this.#context.db
      .select({ kind, name, holder, content, gone_at })
      .from(discoveryClaims)
      .where(eq(discoveryClaims.source, source))
      .all() as StoredClaim[];
  }

  /** One fact for each source. */
  all(): readonly ClaimsFact[] {
    const rows = this.#context.db
      .selectDistinct({ source: discoveryClaims.source })
      .from(discoveryClaims)
      .all();
    return rows.map(({ source }) => ({
      kind: "discovery_claims",
      source,
      claims: this.load(source),
      released: [],
    }));
  }

  write({ source, claims, released }: ClaimsFact): void {
    if (released.length > 0) {
      const remove = this.#context.db
        .delete(discoveryClaims)
        .where(and(...KEY.map((column) => eq(discoveryClaims[column], sql.placeholder(column)))))
        .prepare();
      for (const key of released) remove.run({ source, ...key });
    }
    if (claims.length === 0) return;
    const [set, values] = [
      Object.fromEntries(REST.map((column) => [column, sql.raw(`excluded.${column}`)])),
      Object.fromEntries([...KEY, ...REST].map((column) => [column, sql.placeholder(column)])),
    ];
    const put = this.#context.db
      .insert(discoveryClaims)
      .values(values as unknown as typeof discoveryClaims.$inferInsert)
      .onConflictDoUpdate({ target: KEY.map((column) => discoveryClaims[column]), set })
      .prepare();
    for (const claim of claims) put.run({ source, ...claim });
  }
}

const KEY = ["source", "kind", "name"] as const;
const REST = ["holder", "content", "gone_at"] as const;
