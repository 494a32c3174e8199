// A running node goes on at another address of its fleet's database, once that is known to be the same one; keeps no address.
import type { EntryMark } from "../model/fact.ts";
import {
  FleetError,
  type FleetIdentity,
  type PostgresAddress,
  queryTimes,
} from "./postgres-connection.ts";
import { PostgresSource } from "./postgres-source.ts";

export interface MoveOptions {
  readonly source: Pick<PostgresSource, "use">;
  readonly identity: FleetIdentity;
  /** The last entry that this node has. */
  readonly mark: () => EntryMark | null;
  /** Runs `work` while no entry is on its way. */
  readonly alone: (work: () => Promise<void>) => Promise<void>;
  readonly onMoved: () => void;
}

/** Throws a FleetError or SourceUnreachable, and nothing was changed, unless all that this node has is there. */
export async function move(address: PostgresAddress, options: MoveOptions): Promise<void> {
  await options.alone(async () => {
    const there = new PostgresSource({ ...address, ...queryTimes });
    try {
      await there.requireFleet();
      await there.open();
      await requireSame(there, options);
    } finally {
      await there.close();
    }
    options.source.use(address);
  });
  options.onMoved();
}

async function requireSame(
  there: PostgresSource,
  { identity, mark }: Pick<MoveOptions, "identity" | "mark">,
): Promise<void> {
  const found = await there.identity();
  if (found.fleetId !== identity.fleetId || found.keyId !== identity.keyId)
    throw new FleetError("--store: this database holds another fleet, or one with another key");
  const { position = 0, id = null } = mark() ?? {};
  const { head, knownId } = await there.after(position);
  if (head < position || (knownId ?? id) !== id)
    throw new FleetError(
      `--store: this database lacks entry ${position}, the last one of this node: move all data first, and stop the former database before`,
    );
}
