// The source of a fleet's log in a database of the tests, with patience: a busy machine may take its time for a query.
import type { QueryTimes } from "../../src/fleet/postgres-connection.ts";
import { PostgresSource } from "../../src/fleet/postgres-source.ts";
import { Postgres } from "./postgres.ts";

const PATIENT: QueryTimes = { queryMs: 60_000, appendMs: 60_000, beatMs: 60_000 };

export const createSource = ({ url }: Postgres, times = PATIENT): PostgresSource =>
  new PostgresSource({ urls: [url], rootCertificate: null, ...times });

/** A database, and the source of a log in it that is open. */
export async function openSource(
  cleanups: (() => unknown)[],
): Promise<{ postgres: Postgres; source: PostgresSource }> {
  const postgres = await Postgres.create();
  cleanups.push(() => postgres.stop());
  const source = createSource(postgres);
  cleanups.push(() => source.close());
  await source.open();
  return { postgres, source };
}
