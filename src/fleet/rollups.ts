// What nodes have counted, signed, in the database of the fleet: who can write to it must not be able to speak for a node; sends no query.
import type { RollupDocument, RollupRow } from "../model/rollup.ts";
import type { NodeRollups, SharedQuery, SharedRollups } from "../observe/stats/shared-rollups.ts";
import type { Clock } from "../clock.ts";
import type { EntryCodec } from "./entry.ts";
import type { PostgresSource } from "./postgres-source.ts";
import type { StoredRollup } from "./postgres-rollups.ts";

export interface FleetRollupsOptions {
  readonly source: Pick<PostgresSource, "writeRollups" | "rollups">;
  readonly codec: EntryCodec;
  /** Id of this node. */
  readonly id: string;
  readonly name: string;
  readonly clock: Clock;
  /** Throws a 503 while this node is cut off. */
  readonly requireConnected: () => void;
}

/** What is in `document`. Never changed, as the signed fields: older versions read it. */
interface Content {
  readonly name: string;
  readonly until: number;
  readonly objects: readonly (readonly [id: string, document: RollupDocument])[];
}

export class FleetRollups implements SharedRollups {
  readonly #options: FleetRollupsOptions;

  constructor(options: FleetRollupsOptions) {
    this.#options = options;
  }

  async write(rows: readonly RollupRow[]): Promise<void> {
    const { source, codec, id: node, name, clock, requireConnected } = this.#options;
    requireConnected();
    const until = clock.now();
    const groups = Map.groupBy(rows, ({ span, at, kind }) => `${span} ${at} ${kind}`);
    const stored = [...groups.values()].flatMap((group) => {
      const [first] = group;
      if (first === undefined) return [];
      const { span, at, kind } = first;
      const objects = group.map((row) => [row.object_id, row.document] as const);
      const content: Content = { name, until, objects };
      const document = Bun.zstdCompressSync(JSON.stringify(content));
      const unsigned = { node, span, at, kind, document };
      return [{ ...unsigned, mac: codec.signRollup(fields(unsigned), document) }];
    });
    await source.writeRollups(stored);
  }

  async read(query: SharedQuery): Promise<readonly NodeRollups[]> {
    const { source, codec, requireConnected } = this.#options;
    requireConnected();
    const found = (await source.rollups(query)).filter((row) =>
      codec.isSignedRollup(fields(row), row.document, row.mac),
    );
    return [...Map.groupBy(found, ({ node }) => node)].map(([id, stored]) => {
      const read = stored.map((row) => ({ ...row, content: contentOf(row) }));
      const last = read.reduce((one, other) =>
        other.content.until > one.content.until ? other : one,
      );
      const rows = read.flatMap(({ span, at, kind, content: { objects } }) =>
        objects.map(([object_id, document]) => ({ span, at, kind, object_id, document })),
      );
      return { id, name: last.content.name, until: last.content.until, rows };
    });
  }
}

const fields = ({ node, span, at, kind }: Omit<StoredRollup, "document" | "mac">) => [
  node,
  span,
  at,
  kind,
];

const contentOf = ({ document }: StoredRollup): Content =>
  JSON.parse(new TextDecoder().decode(Bun.zstdDecompressSync(document))) as Content;
