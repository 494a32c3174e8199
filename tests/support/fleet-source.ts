// The source of a fleet's log in a database of the tests, with the product's deadlines unless others are given.
import { queryTimes } from "../../src/fleet/postgres-connection.ts";
import { PostgresSource } from "../../src/fleet/postgres-source.ts";
import { Postgres } from "./postgres.ts";

export const createSource = ({ url }: Postgres, times = queryTimes): PostgresSource =>
  new PostgresSource({ urls: [url], rootCertificate: null, ...times });

/** A database, and the source of a log in it that is open. */
export async function openSource(
  cleanups: (() => unknown)[],
  times = queryTimes,
): Promise<{ postgres: Postgres; source: PostgresSource }> {
  const postgres = await Postgres.create();
  cleanups.push(() => postgres.stop());
  const source = createSource(postgres, times);
  cleanups.push(() => source.close());
  await source.open();
  return { postgres, source };
}
