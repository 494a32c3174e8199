// What `fleet move` asks of a running node: another address of its fleet's database, for now and for the next start.
import type { Turns } from "../control/turns.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Follower } from "../fleet/follower.ts";
import type { Membership } from "../fleet/join.ts";
import { move } from "../fleet/move.ts";
import { FleetError } from "../fleet/postgres-connection.ts";
import { meaningOf } from "../fleet/postgres-words.ts";
import { SourceUnreachable } from "../fleet/source.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import type { Store } from "../store/store.ts";
import type { DatabaseMove } from "./control-socket.ts";
import { moveMembership } from "./fleet-membership.ts";

export interface DatabaseMoveParts extends Pick<Membership, "source" | "codec"> {
  readonly box: Pick<SecretBox, "keyId">;
  readonly store: Pick<Store, "mark">;
  readonly dataDir: string;
  /** Whether the node has its address from the data directory. */
  readonly isJoined: boolean;
  readonly follower: Pick<Follower, "wakeUps">;
  readonly log: Log;
}

/** `turns`: those of changes. */
export const databaseMove = (
  { source, codec, box, store, dataDir, isJoined, follower, log }: DatabaseMoveParts,
  turns: Turns,
): DatabaseMove => ({
  useDatabase: async ({ urls, root_certificate }) => {
    await moveTo(
      { urls, rootCertificate: root_certificate },
      {
        source,
        identity: { fleetId: codec.fleetId, keyId: box.keyId },
        mark: () => store.mark(),
        alone: (work) => turns.runOpen(work),
        onMoved: () => follower.wakeUps.lose(),
      },
    );
    log.info("the database of the fleet is reached at another address");
    return { is_kept: isJoined && moveMembership(dataDir, { urls, root_certificate }) };
  },
});

/** Throws an ApiError that says why the address cannot be used. */
async function moveTo(...[address, options]: Parameters<typeof move>): Promise<void> {
  try {
    await move(address, options);
  } catch (error) {
    const isUnreachable = error instanceof SourceUnreachable;
    if (!isUnreachable && !(error instanceof FleetError)) throw error;
    const reason = isUnreachable
      ? `--store: the database cannot be used: ${meaningOf(error) ?? "check its address, and that it runs"}`
      : error.message;
    throw new ApiError(409, `${reason}; nothing was changed`, { cause: error });
  }
}
